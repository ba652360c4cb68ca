//! Damage is an error that names the file, or makes no difference: never another answer, a panic or a hang.

use super::*;

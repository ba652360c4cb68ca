//! Text inside HTML, and JSON inside a script element.

/// Text for an element's content or a quoted attribute.
pub fn text(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON for a script element: no `<` is left that could end the element or open a comment. In JSON it only stands
/// inside strings, where its escape means the same.
pub fn json(s: &str) -> String {
    s.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(text(r#"<b a="x">'&'"#), "&lt;b a=&quot;x&quot;&gt;&#39;&amp;&#39;");
        let hostile = serde_json::json!({"a": "</script><!-- <script>"}).to_string();
        let safe = json(&hostile);
        assert!(!safe.contains('<'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap()["a"], "</script><!-- <script>");
    }
}

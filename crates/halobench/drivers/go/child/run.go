// Package child runs one engine through one plan: prepares, times, checks and tells.
package child

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

// Opener opens an engine by name; tests put their own in.
type Opener func(name, dir string, config *spec.Config) (engine.Engine, error)

// Run runs a plan, telling emit what happens.
func Run(plan *spec.Plan, open Opener, emit func(spec.Event) error) error {
	if err := checkPlan(plan); err != nil {
		return err
	}
	g, err := newGenerator(plan.Set)
	if err != nil {
		return err
	}
	expect := workload.NewExpect(plan.Set.N)
	db := filepath.Join(plan.Dir, "db")
	if err := os.MkdirAll(db, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", db, err)
	}
	start := usage()
	opened := &start
	e, err := open(plan.Engine, db, &plan.Config)
	if err != nil {
		return err
	}
	var ending spec.Ending
	for i := range plan.Phases {
		name := phaseName(&plan.Phases[i])
		if err := emit(spec.Event{Begin: &name}); err != nil {
			return err
		}
		result, err := runPhase(plan, i, e, g, expect, opened)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		opened = nil
		ending.UserBytes += result.UserBytes
		ending.LiveBytes = result.LiveBytes
		if err := emit(spec.Event{Phase: result}); err != nil {
			return err
		}
	}
	name := "close and reopen"
	if err := emit(spec.Event{Begin: &name}); err != nil {
		return err
	}
	closing := time.Now()
	if err := e.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	ending.CloseS = time.Since(closing).Seconds()
	ending.Space = space(plan.Dir)
	ending.Usage = usageSince(start)
	opening := time.Now()
	if e, err = open(plan.Engine, db, &plan.Config); err != nil {
		return fmt.Errorf("reopening: %w", err)
	}
	ending.ReopenS = time.Since(opening).Seconds()
	var bad wrong
	if e.Stores() {
		if bad, _, err = state(e, g, expect); err != nil {
			return err
		}
	}
	ending.Wrong, ending.WrongExamples = bad.count, bad.words()
	if err := e.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return emit(spec.Event{End: &ending})
}

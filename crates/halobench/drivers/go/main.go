// The lab's driver for engines written in Go.
//
// It reads a plan, one line of JSON, from its standard input, does it, and writes events, a line of JSON each, to its
// standard output. When its standard input ends, its parent is gone: it removes the plan's folder and ends.
// docs/lab/drivers.md has the protocol.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/halocline/halocline/crates/halobench/drivers/go/child"
	"github.com/halocline/halocline/crates/halobench/drivers/go/durability"
	"github.com/halocline/halocline/crates/halobench/drivers/go/engine"
	"github.com/halocline/halocline/crates/halobench/drivers/go/spec"
	"github.com/halocline/halocline/crates/halobench/drivers/go/workload"
)

func main() { os.Exit(run()) }

func run() int {
	// The parent keeps the last lines of a driver that died: let them be its words, not its stacks.
	debug.SetTraceback("none")
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil && err != io.EOF {
		return 2
	}
	if task := durability.TaskIn(line); task != nil {
		go watchParent(in, task.Dir)
		return durability.Run(task)
	}
	var plan spec.Plan
	if err := json.Unmarshal(line, &plan); err != nil {
		_ = fail(fmt.Errorf("reading the plan: %w", err))
		return 2
	}
	go watchParent(in, plan.Dir)
	if program, err := os.Executable(); err == nil {
		// The lab puts it beside the program.
		workload.ProseFile = filepath.Join(filepath.Dir(program), "prose.txt")
	}
	if err := child.Run(&plan, engine.Open, say); err != nil {
		_ = fail(err)
		return 1
	}
	return 0
}

func say(event spec.Event) error {
	line, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err = os.Stdout.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("telling the parent: %w", err)
	}
	return nil
}

func fail(err error) error {
	words := err.Error()
	return say(spec.Event{Failed: &words})
}

// watchParent leaves nothing behind when the parent's end of the standard input closes.
func watchParent(in io.Reader, dir string) {
	_, _ = io.Copy(io.Discard, in)
	_ = os.RemoveAll(dir)
	os.Exit(3)
}

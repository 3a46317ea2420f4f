package main

import (
	"fmt"
	"io"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/snapshot"
	"memtrace/internal/visible"
	"memtrace/trace"
)

// snapshot writes what is live in a process that is recorded as a trace of its own.
func (a *app) snapshot(o controlOptions, pid int) error {
	answer, err := a.ask(pid, "status")
	if err != nil {
		return err
	}
	path, err := recordedTrace(pid, answer)
	if err != nil {
		return err
	}
	output := o.output
	if output == "" {
		output = fmt.Sprintf("live.%d.bin", pid)
	}
	if err := refuseSame(path, output); err != nil {
		return err
	}
	source, err := a.openTrace(path)
	if err != nil {
		return err
	}
	defer source.Close()
	live, err := snapshot.Read(source)
	if err != nil {
		return readError(path, source, err)
	}
	err = a.writeTo(output, o.force, visible.Bytes, func(w io.Writer) error {
		out, err := trace.NewWriter(w, trace.WriterOptions{})
		if err != nil {
			return err
		}
		return live.Write(out, source)
	})
	if err == nil && !a.quiet && output != "-" {
		driver, framework := live.Bytes()
		a.say("%s of device memory and %s in a framework's blocks are live; next: memtrace report %s", layout.Bytes(driver), layout.Bytes(framework), shellWord(output))
	}
	return err
}

package layout

import (
	"fmt"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// Command is the command line of a process, as far as it is known.
func Command(proc report.Process) string {
	if proc.Command != "" {
		return sanitize.Text(proc.Command)
	}
	if len(proc.Args) > 0 {
		return sanitize.Text(strings.Join(proc.Args, " "))
	}
	return sanitize.Text(proc.Exe)
}

// Process describes the process, where it ran and when it began.
func Process(proc report.Process) string {
	text := "unknown pid"
	if proc.PID != 0 {
		text = fmt.Sprintf("pid %d", proc.PID)
	}
	if name := rankName(proc); name != "" {
		text = name + ", " + text
	}
	if proc.Host != "" {
		text += " on " + sanitize.Text(proc.Host)
	}
	if proc.Pod != "" {
		text += ", pod " + sanitize.Text(proc.Pod)
	}
	if proc.Container != "" {
		text += ", container " + sanitize.Text(proc.Container)
	}
	if started, err := time.Parse(time.RFC3339Nano, proc.Started); err == nil {
		word := ", started "
		if proc.BeganAfterNS > 0 {
			word = ", recorded from "
		}
		text += word + started.Format("2006-01-02 15:04:05 MST")
	}
	if proc.BeganAfterNS > 0 {
		text += " on, " + Duration(proc.BeganAfterNS) + " after its start"
	}
	return text
}

// rankName is a process's rank in a distributed run, "" if there is none.
func rankName(proc report.Process) string {
	switch {
	case proc.Rank == nil:
		return ""
	case proc.WorldSize > 0:
		return fmt.Sprintf("rank %d of %d", *proc.Rank, proc.WorldSize)
	}
	return fmt.Sprintf("rank %d", *proc.Rank)
}

// Ending describes how long a process ran and how it ended.
func Ending(proc report.Process) string {
	words := map[string]string{
		report.EndedClean:   "exited",
		report.EndedKilled:  "killed; the trace holds everything up to the last recorded call",
		report.EndedRunning: "still running; what came later is not counted",
		report.EndedUnknown: "how it ended is unknown: the trace lacks its end",
	}
	ended, known := words[proc.Ended]
	if !known {
		ended = sanitize.Text(proc.Ended)
	}
	if proc.Signal != "" && proc.Ended == report.EndedKilled {
		ended = "ended by " + sanitize.Text(proc.Signal) + strings.TrimPrefix(ended, "killed")
	}
	if proc.ExitStatus != nil {
		ended = fmt.Sprintf("exit status %d", *proc.ExitStatus)
	}
	if proc.Stopped != "" && proc.Ended == report.EndedClean {
		ended = "stopped by " + sanitize.Text(proc.Stopped) + "; the program went on"
	}
	if proc.Snapshot {
		return "snapshot after " + Duration(proc.DurationNS)
	}
	if proc.DurationNS == 0 {
		return ended
	}
	return Duration(proc.DurationNS) + ", " + ended
}

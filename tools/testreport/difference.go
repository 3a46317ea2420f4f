package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	mostLines = 40 // of a failure's text
	lastLines = 12 // of them, how many are its last ones
	longText  = 12 // lines from which on two texts are shown by their differences
)

// difference returns what matters of a test's output: of long texts that should be equal the lines that differ, of
// stacks the project's own functions, and of anything else the beginning and the end.
func difference(lines []string) []string {
	if slices.ContainsFunc(lines, stackStarts.MatchString) {
		lines = ours(lines)
	}
	var kept []string
	for _, message := range messages(lines) {
		kept = append(kept, compared(ofScript(message))...)
	}
	return cut(unindented(kept), mostLines)
}

// cut leaves out lines in the middle if there are more than most.
func cut(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	last := min(lastLines, most/2)
	first := most - last - 1
	left := fmt.Sprintf("... %d lines left out ...", len(lines)-first-last)
	return append(append(append([]string{}, lines[:first]...), left), lines[len(lines)-last:]...)
}

// unindented takes off the blanks that all lines begin with.
func unindented(lines []string) []string {
	blanks := 1 << 20
	for _, line := range lines {
		if line != "" {
			blanks = min(blanks, len(line)-len(strings.TrimLeft(line, " ")))
		}
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line[min(blanks, len(line)):]
	}
	return out
}

// messageStarts matches the first line of what t.Log, t.Error and t.Fatal print. Its other lines are indented further.
var messageStarts = regexp.MustCompile(`^( *)[\w.-]+\.go:\d+: `)

// messages divides the output of a test into its log messages.
func messages(lines []string) (all [][]string) {
	indent := -1
	for _, line := range lines {
		m := messageStarts.FindStringSubmatch(line)
		blanks := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case m != nil:
			indent = len(m[1])
			all = append(all, []string{line})
		case indent >= 0 && (line == "" || blanks > indent):
			all[len(all)-1] = append(all[len(all)-1], line)
		default:
			indent = -1
			all = append(all, []string{line})
		}
	}
	return all
}

// ofScript returns, from the log of package testscript, the script's comment on the part that failed, and that part's
// last command with its output. If that is almost empty, the command checked the output of the one before.
func ofScript(message []string) []string {
	if !strings.HasPrefix(strings.TrimLeft(message[0], " "), "testscript.go:") {
		return message
	}
	commands, about := []int{0}, message[0]
	for i, line := range message {
		switch text := strings.TrimLeft(line, " "); {
		case strings.HasPrefix(text, "> "):
			commands = append(commands, i)
		case strings.HasPrefix(text, "# "):
			about = line
		}
	}
	from := commands[len(commands)-1]
	if len(message)-from < 4 && len(commands) > 2 {
		from = commands[len(commands)-2]
	}
	return append([]string{about}, message[max(1, from):]...)
}

// Our tests write "...\nGOT\nwant\nWANT", "GOT, want\nWANT" or, where GOT ends in a line's end, "GOTwant\nWANT".
var (
	gotEnds    = regexp.MustCompile(`(got|gives|gave|is|are|of|lines):?$`)
	wantStarts = regexp.MustCompile(`^(.*?)(?:, want|\bwant):?$`)
)

// compared returns a message in which a long text and the one that was wanted are replaced by what differs.
func compared(message []string) []string {
	for i, line := range message {
		m := wantStarts.FindStringSubmatch(line)
		if i == 0 || m == nil || len(message)-3 < longText || !gotEnds.MatchString(message[0]) {
			continue
		}
		got, want := message[1:i:i], message[i+1:]
		if strings.TrimSpace(m[1]) != "" {
			got = append(got, m[1])
		}
		margin := line[:len(line)-len(strings.TrimLeft(line, " "))]
		out := []string{message[0] + " (-: want, +: got)"}
		for _, line := range differing(unindented(got), unindented(want)) {
			out = append(out, margin+line)
		}
		return out
	}
	return message
}

// differing returns the lines that differ, with some around them.
func differing(got, want []string) []string {
	text := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	unified := diff.Diff("want", text(want), "got", text(got))
	if unified == nil {
		return []string{"the texts are the same but for blanks at the ends of lines"}
	}
	lines := strings.Split(strings.TrimSuffix(string(unified), "\n"), "\n")
	return lines[3:] // the names of the texts
}

var (
	stackStarts = regexp.MustCompile(`^(goroutine \d+ .*\[|WARNING: DATA RACE)`)
	frameFile   = regexp.MustCompile(`^\s+(\S+\.(?:go|s)):\d+( \+0x[0-9a-f]+)?$`)
	stackHead   = regexp.MustCompile(`^(goroutine \d+ .*|.*[Gg]oroutine \d+.*):$`)
)

// ours leaves of stacks the functions below the root, whose paths are relative, and the goroutines that have
// some. Where there are none, as in a crash of Go itself, all lines stay.
func ours(lines []string) []string {
	var kept []string
	dropHead := func() {
		for len(kept) > 0 && stackHead.MatchString(kept[len(kept)-1]) {
			kept = kept[:len(kept)-1]
		}
	}
	some := false
	for i := 0; i < len(lines); i++ {
		if i+1 < len(lines) {
			if m := frameFile.FindStringSubmatch(lines[i+1]); m != nil {
				i++
				if !strings.HasPrefix(m[1], "/") && m[1] != "_testmain.go" {
					kept = append(kept, lines[i-1], strings.TrimSuffix(lines[i], m[2]))
					some = true
				}
				continue
			}
		}
		dropHead()
		if lines[i] != "" {
			kept = append(kept, lines[i])
		}
	}
	if dropHead(); !some {
		return lines
	}
	return kept
}

package training

import (
	"strings"
	"testing"

	"memtrace/trace"
)

// A program that trains one model after another had one iteration for all but the last, since only one optimizer's
// steps counted.
//
// Every step of a model's optimizer ends an iteration, whether models are trained one after another or in long turns,
// and where several step in one iteration, one of them ends it.
func TestIterationsOfSeveralOptimizers(t *testing.T) {
	var tables trace.Tables
	for i, name := range []string{"Adam", "SGD", "AdamW", "Lion"} {
		tables.AddString(trace.StringID(i+1), name)
	}
	again := strings.Repeat
	for _, c := range []struct{ steps, ends, words string }{
		{"aaaa", "||||", "steps of Adam"},
		{again("a", 25) + again("e", 25) + again("i", 25), again("|", 75), "steps of Adam"}, // restarts
		{"aaabbbbccc", "||||||||||", "steps of Adam, AdamW and SGD"},
		{"aaabbbcccddd", "||||||||||||", "steps of Adam, AdamW and others"},
		{"abababab", ".|.|.|.|", "steps of SGD"},                          // two networks
		{"ab", ".|", "steps of SGD"},                                      // one iteration of them
		{"abcd", "...|", "steps of Lion"},                                 // an optimizer for each parameter
		{"abcdabcd", "...|...|", "steps of Lion"},                         //
		{"ababcdcd", ".|.|.|.|", "steps of Lion and SGD"},                 // pairs, one after the other
		{"aaaabaaaab", "||||.||||.", "steps of Adam"},                     // many steps of one for each of the other
		{"aabaab", "||.||.", "steps of Adam"},                             //
		{"aaaabbbbaaaabbbb", "||||||||||||||||", "steps of Adam and SGD"}, // long turns
		{"aaaababababab", "||||.|.|.|.|.", "steps of Adam"},               // the second network comes later
		{"abbbb", "|||||", "steps of Adam and SGD"},                       // a first step of another
		{"aabccc", "||||||", "steps of Adam, AdamW and SGD"},
	} {
		l := newOptimizers()
		for i, object := range c.steps {
			l.step(&trace.Event{Seq: uint64(10 + i), Handle: uint64(object), Name: trace.StringID((object-'a')%4 + 1)})
		}
		ending, words := l.ending(&tables)
		var ends strings.Builder
		for _, object := range c.steps {
			if ending[uint64(object)] {
				ends.WriteByte('|')
			} else {
				ends.WriteByte('.')
			}
		}
		if ends.String() != c.ends || words != c.words {
			t.Errorf("%s: %s, %q; want %s, %q", c.steps, &ends, words, c.ends, c.words)
		}
	}
}

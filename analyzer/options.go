package analyzer

import (
	"regexp"

	"memtrace/analyzer/symbol"
)

// Options say what a summary counts and how it divides it. The zero value counts everything.
type Options struct {
	// Groupings are names from GroupingNames. None: tag, library and api, and the report chooses among them.
	Groupings []string
	// At asks for the state at a moment besides the peaks.
	At At

	// Devices keeps the blocks of these devices only; empty keeps all.
	Devices []int16
	// Tag keeps blocks whose tag path is this one or lies below it.
	Tag string
	// Library keeps blocks whose calling library's name contains this text.
	Library string
	// Focus keeps blocks with a tag, call, library or thread that it matches; Ignore drops them.
	Focus, Ignore *regexp.Regexp

	// Symbols says where the names of call stacks are looked for.
	Symbols symbol.Options
	// FullStacks shows every frame; otherwise library noise is folded away.
	FullStacks bool

	// Progress, if set, is called after every batch with the number of bytes read so far.
	Progress func(bytesRead int64)
}

// defaultGroupings are what a summary divides by when it is not told.
var defaultGroupings = []string{"tag", "library", "api"}

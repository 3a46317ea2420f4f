// Package export writes the call stacks of a trace in the formats of other tools, and as a picture.
//
// Every format starts from the same samples: one for each distinct call stack, whose values add up to the summary's for
// the level. It is separate from package render because the preloaded library links that one: no code of this package
// may run in the traced process.
package export

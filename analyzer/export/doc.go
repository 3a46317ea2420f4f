// Package export writes the call stacks of a trace in the formats of other tools, and as a picture.
//
// Every format starts from the same samples: one for each distinct call stack, whose values add up to what the summary
// says of the level. It is apart from package render because the preloaded library links that one: nothing of here may
// run in somebody's process.
package export

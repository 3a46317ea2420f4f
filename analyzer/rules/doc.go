// Package rules sorts memory into categories by ordered rules: what a block's tag, name, call stack, library, call,
// kind, level, size or phase says decides under which heading it is counted.
//
// A Set is a value that was checked; a Matcher asks its rules about Subjects. What a rule says about frames of a call
// stack is asked once per frame, however many stacks the frame is in. Sets are written as TOML, see package rulefile;
// this package knows no file format, so that it can be linked where none is wanted.
package rules

// Package rules sorts memory into categories by ordered rules: a block's tag, name, call stack, library, call, kind,
// level, size or phase decides its category.
//
// A Set is a validated value; a Matcher applies its rules to Subjects. Conditions on frames of a call stack are
// evaluated once per frame, however many stacks contain the frame. Sets are written as TOML, see package rulefile; this
// package has no file format, so that it can be linked without one.
package rules

// Package callstack makes one call stack out of a native and a Python one, decides whose code each frame is, folds away
// what says nothing, and names the library that made a call.
package callstack

// Package callstack joins a native and a Python stack into one call stack, classifies the owner of each frame, folds
// away frames without information, and names the library that made a call.
package callstack

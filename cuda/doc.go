// Package cuda is the plain vocabulary of CUDA memory: which calls exist (API), what kinds of memory there are, error
// names and devices. It imports nothing of the project and needs no cgo, so that every other package, on any platform,
// can share its words.
package cuda

//go:generate go run ../tools/genapi -hooks ../cshim/hooks.def -out api_gen.go

package analyzer

import (
	"fmt"
	"path"
	"regexp"

	"memtrace/analyzer/symbol"
)

// stackID is the identifier of groupings by place.
func stackID(_ *resolver, o *origin) uint64 { return stackPair{o.stack, o.pyStack}.id() }

// placed makes a key from the site of a stack.
func placed(r *resolver, id uint64, text func(j *judge, f *frame) string) string {
	stack := r.stacks.of(pairOf(id))
	if stack.site == nil {
		return NoStack
	}
	return text(&r.stacks.judge, stack.site)
}

func siteKey(r *resolver, id uint64) string { return r.stacks.of(pairOf(id)).key }

func functionKey(r *resolver, id uint64) string { return placed(r, id, (*judge).function) }

func fileKey(r *resolver, id uint64) string { return placed(r, id, (*judge).sourceFile) }

func lineKey(r *resolver, id uint64) string {
	return placed(r, id, func(j *judge, f *frame) string {
		if line := j.line(f); line != "" {
			return line
		}
		return j.site(f)
	})
}

// site names a place of the program: "train.py:41 Block.forward". Code without lines is named by function and object file: "main (train)".
func (j *judge) site(f *frame) string {
	if line := j.line(f); line != "" {
		return line + " " + f.title()
	}
	return j.function(f)
}

// line is a place as editors take it, "" without a source file.
func (j *judge) line(f *frame) string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return j.place(f.File)
	}
	return fmt.Sprintf("%s:%d", j.place(f.File), f.Line)
}

// autogradFile stands for the file of every step of a gradient computation: they are generated, and run for the user's lines of the forward pass.
const autogradFile = "autograd"

// sourceFile names the file that a function is in, its object file if no more is known.
func (j *judge) sourceFile(f *frame) string {
	switch {
	case f.fold == foldNode, f.fold == foldEngine:
		return autogradFile
	case f.File == "":
		return j.object(f)
	}
	return j.place(f.File)
}

// function names a function together with the file that it is in, where that says more.
func (j *judge) function(f *frame) string {
	switch {
	case f.short != "", f.Kind != symbol.Python && f.Function == "":
		return f.title()
	case f.File != "":
		return f.title() + " (" + j.place(f.File) + ")"
	}
	return f.title() + " (" + j.object(f) + ")"
}

// object is the base name of a frame's object file.
func (j *judge) object(f *frame) string {
	if f.Module == "" {
		return unknownCode
	}
	return path.Base(f.Module)
}

// unknownCode stands for code that was made at run time and has no name.
const unknownCode = "[jit]"

// title is what a frame is called in folded stacks. Code without a name and an object file is named without its address, which is another one in every run.
func (f *frame) title() string {
	switch {
	case f.short != "":
		return f.short
	case f.Kind == symbol.JIT && f.Function == "":
		return unknownCode
	}
	return f.Name()
}

var lineNumber = regexp.MustCompile(`:\d+( |$)`)

// withoutLine drops the line from the key of a site, which another line in the same file changes.
func withoutLine(key string) string {
	if at := lineNumber.FindStringSubmatchIndex(key); at != nil {
		return key[:at[0]] + key[at[2]:]
	}
	return key
}

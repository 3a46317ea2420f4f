package callstack

import (
	"fmt"
	"path"

	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
)

// Site names a place of the program: "train.py:41 Block.forward". Code without lines is named by function and object
// file: "main (train)".
func (j *Classifier) Site(f *Frame) string {
	if line := j.Line(f); line != "" {
		return line + " " + f.Title()
	}
	return j.Function(f)
}

// Line is a place in the form that editors accept, "" without a source file.
func (j *Classifier) Line(f *Frame) string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return j.Place(f.File)
	}
	return fmt.Sprintf("%s:%d", j.Place(f.File), f.Line)
}

// autogradFile replaces the file of every step of a gradient computation: these files are generated, and run for user
// code of the forward pass.
const autogradFile = "autograd"

// SourceFile names the file that a function is in, its object file if no more is known.
func (j *Classifier) SourceFile(f *Frame) string {
	switch {
	case f.Fold == FoldNode, f.Fold == foldEngine:
		return autogradFile
	case f.File == "":
		return j.object(f)
	}
	return j.Place(f.File)
}

// Function names a function together with its file, where that adds information.
func (j *Classifier) Function(f *Frame) string {
	switch {
	case f.short != "", f.Kind != symbol.Python && f.Function == "":
		return f.Title()
	case f.File != "":
		return f.Title() + " (" + j.Place(f.File) + ")"
	}
	return f.Title() + " (" + j.object(f) + ")"
}

// object is the base name of a frame's object file.
func (j *Classifier) object(f *Frame) string {
	if f.Module == "" {
		return unknownCode
	}
	return path.Base(f.Module)
}

// unknownCode is the name of code without a name that was generated at run time.
const unknownCode = "[jit]"

// Title is the name of a frame in folded stacks. Code without a name and an object file is shown without its address,
// which differs from run to run.
func (f *Frame) Title() string {
	switch {
	case f.short != "":
		return f.short
	case f.Kind == symbol.JIT && f.Function == "":
		return unknownCode
	}
	return f.Name()
}

func (j *Classifier) StackFrame(f *Frame, full bool) report.StackFrame {
	v := report.StackFrame{Kind: report.FrameNative, Function: f.Title(), File: j.Place(f.File), Path: f.File,
		Line: f.Line, Module: f.Module, Address: f.Address, User: f.User,
		Nameless: f.Function == "", Operator: f.short != ""}
	if full {
		v.Function, v.Operator = f.Name(), false
	}
	if f.Kind == symbol.Python {
		v.Kind, v.Address = report.FramePython, 0
	}
	return v
}

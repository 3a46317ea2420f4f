package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/internal/regular"
	"memtrace/trace"
	"memtrace/trace/spool"
)

const traceSuffix = ".bin"

// input is one trace to read.
type input struct {
	path       string
	fromFolder bool // found in a folder that the user named: another program's *.bin may be passed over
}

// expandInputs turns arguments into traces, in order: a file stands for itself, a folder for the traces and left-over
// spools in it. A spool whose trace is in the list is dropped, since reading the trace reads the spool beside it.
func expandInputs(args []string) ([]input, error) {
	var inputs []input
	for _, arg := range args {
		found, err := expandInput(arg)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, found...)
	}
	listed := make(map[string]bool, len(inputs))
	for _, in := range inputs {
		listed[filepath.Clean(in.path)] = true
	}
	return slices.DeleteFunc(inputs, func(in input) bool {
		of, isSpool := strings.CutSuffix(filepath.Clean(in.path), spool.Extension)
		return isSpool && listed[of]
	}), nil
}

func expandInput(arg string) ([]input, error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A process that was killed before its first flush leaves only the spool.
		if _, spoolErr := os.Stat(arg + spool.Extension); spoolErr == nil {
			return []input{{path: arg + spool.Extension}}, nil
		}
		return nil, fmt.Errorf("%s: no such file or folder; 'memtrace run' prints the name of the trace that it wrote", arg)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", arg, errors.Unwrap(err))
	case !info.IsDir():
		return []input{{path: arg}}, nil
	}
	entries, err := os.ReadDir(arg) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", arg, err)
	}
	var inputs []input
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && (strings.HasSuffix(name, traceSuffix) || strings.HasSuffix(name, spool.Extension)) {
			inputs = append(inputs, input{path: filepath.Join(arg, name), fromFolder: true})
		}
	}
	if len(inputs) == 0 {
		return nil, noTracesError(arg)
	}
	return inputs, nil
}

// passOver reports, and says, that what was found in a folder is not the user's to worry about: another program's file,
// or what somebody put there that is no file at all.
func (a *app) passOver(in input, err error) bool {
	switch {
	case !in.fromFolder:
		return false
	case errors.Is(err, trace.ErrNotTrace):
		a.log.Info().Msgf("%s is passed over: %v", in.path, trace.ErrNotTrace)
	case errors.Is(err, regular.ErrNotRegular):
		a.log.Warn().Msgf("%v; it is passed over", err)
	default:
		return false
	}
	return true
}

func noTracesError(folder string) error {
	return fmt.Errorf("%s: no trace in this folder (*%s, *%s); record one with: memtrace run -- PROGRAM", folder, traceSuffix, spool.Extension)
}

// oneInput is for the verbs that take exactly one trace in a place: a folder will do if one trace lies in it.
func oneInput(arg string) (string, error) {
	inputs, err := expandInputs([]string{arg})
	if err != nil {
		return "", err
	}
	if len(inputs) != 1 {
		return "", fmt.Errorf("%s: holds %d traces; name one of them, such as %s", arg, len(inputs), inputs[0].path)
	}
	return inputs[0].path, nil
}

package main

import (
	"errors"
	"io"
	"syscall"

	"memtrace/internal/visible"
)

// shown is a verb's way through several traces: load reads one, while others are read, show writes what it found.
type shown[T any] struct {
	load func(path string) (T, error)
	show func(w io.Writer, value T) error
	json bool
	form visible.Form // of what show writes
}

// toFile shows every trace that args name, in order, in one output. A trace that cannot be read does not keep the
// others from being shown: the errors come back together. In JSON, one file gives its value, and several files or a
// folder an array.
func (s shown[T]) toFile(a *app, args []string, path string, force bool) error {
	inputs, err := expandInputs(args)
	if err != nil {
		return err
	}
	list := jsonList{single: len(inputs) == 1 && !inputs[0].fromFolder}
	var problems []error
	err = a.writeTo(path, force, s.form, func(w io.Writer) error {
		shownAny := false
		err := inOrder(inputs, s.load, func(in input, value T, err error) error {
			if a.passOver(in, err) {
				return nil
			}
			if err != nil {
				problems = append(problems, err)
				return nil
			}
			err = s.element(w, list, shownAny, value)
			shownAny = true
			return err
		})
		switch {
		case err != nil:
			return err
		case shownAny && s.json:
			return list.close(w)
		case !shownAny && problems == nil:
			return noTracesError(args[0])
		case !shownAny:
			return errNothingShown
		}
		return nil
	})
	if errors.Is(err, errNothingShown) || errors.Is(err, syscall.EPIPE) && problems != nil {
		err = nil // problems are what is to be told
	}
	return errors.Join(append(problems, err)...)
}

// errNothingShown keeps an output file from being made when there is nothing to put into it.
var errNothingShown = errors.New("nothing to show")

func (s shown[T]) element(w io.Writer, list jsonList, follows bool, value T) error {
	switch {
	case s.json:
		if err := list.next(w, follows); err != nil {
			return err
		}
	case follows:
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return s.show(w, value)
}

// jsonList writes the brackets and commas around values that write themselves.
type jsonList struct {
	single bool // one value, no array
}

func (l jsonList) next(w io.Writer, follows bool) error {
	if l.single {
		return nil
	}
	mark := "[\n"
	if follows {
		mark = ",\n"
	}
	_, err := io.WriteString(w, mark)
	return err
}

func (l jsonList) close(w io.Writer) error {
	if l.single {
		return nil
	}
	_, err := io.WriteString(w, "]\n")
	return err
}

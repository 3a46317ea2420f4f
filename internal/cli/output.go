package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"memtrace/internal/sanitize"
)

const outputBuffer = 64 << 10

// destination is where a verb writes its result: standard output, or a file that appears under its name only when it is
// whole.
type destination struct {
	*bufio.Writer
	file  *os.File
	owned bool   // file is ours to close
	name  string // for messages
	temp  string // what file is called until commit, or ""
}

// openDestination opens path for writing; "" and "-" mean standard output, which gets no bytes that a terminal would
// interpret. An existing file is replaced only with force; a new one has the mode, less the user's mask. The caller
// ends with either commit or discard.
func (c *Console) openDestination(path string, force bool, form sanitize.Form, mode fs.FileMode) (*destination,
	error) {
	if path == "" || path == "-" {
		if form == sanitize.Bytes && term.IsTerminal(int(c.Stdout.Fd())) {
			return nil, UsageErrorf("standard output is a terminal; name a file with -o")
		}
		return &destination{Writer: bufio.NewWriterSize(c.Stdout, outputBuffer), file: c.Stdout,
			name: "standard output"}, nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, UsageErrorf("%s is a folder; name a file with -o", path)
	case err == nil && !info.Mode().IsRegular(): // a device or a pipe keeps its place
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for a pipe's reader, as a shell does
		if err != nil {
			return nil, fmt.Errorf("open the output: %w", err)
		}
		if opened, err := f.Stat(); err != nil || !os.SameFile(opened, info) {
			return nil, errors.Join(fmt.Errorf("open the output: %s: another file has taken its place", path),
				err, f.Close())
		}
		return newDestination(f, path, ""), nil
	case err == nil && !force:
		return nil, fmt.Errorf("%s exists; use -f to replace it, or name another file", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open the output: %w", err)
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be created: %w; name another file with -o", path, WithoutPath(err))
	}
	return newDestination(f, path, temp), nil
}

// WithoutPath returns the system's error, without the name of the temporary file.
func WithoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func newDestination(file *os.File, name, temp string) *destination {
	return &destination{Writer: bufio.NewWriterSize(file, outputBuffer), file: file, owned: true, name: name,
		temp: temp}
}

// finish writes out what is buffered and closes the file.
func (d *destination) finish() error {
	err := d.Flush()
	if d.owned {
		err = errors.Join(err, d.file.Close())
	}
	return d.named(err)
}

// place renames a finished file to its name.
func (d *destination) place() error {
	if d.temp == "" {
		return nil
	}
	return d.named(os.Rename(d.temp, d.name))
}

// named is an error of the file, if any, under the name that users know.
func (d *destination) named(err error) error {
	if err != nil {
		return fmt.Errorf("write %s: %w", d.name, WithoutPath(err))
	}
	return nil
}

// WriteError returns err, or, for a write to a file, such as to a full disk, an error with the file name that users
// know.
func WriteError(file *os.File, name string, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) && of.Op == "write" && of.Path == file.Name() {
		return fmt.Errorf("write %s: %w", name, of.Err)
	}
	return err
}

// discard drops what was written to a file that has not got its name; what already reached standard output stays there.
func (d *destination) discard() {
	if d.owned {
		_ = d.file.Close()
	}
	if d.temp != "" {
		_ = os.Remove(d.temp)
	}
}

// WriteTo opens the destination, lets produce fill it, and commits it if produce succeeds. form is what produce writes:
// whatever a trace holds, nothing else than that comes out.
func (c *Console) WriteTo(path string, force bool, form sanitize.Form, produce func(io.Writer) error) error {
	return c.WriteAll([]string{path}, force, form, func(w []io.Writer) error { return produce(w[0]) })
}

// WriteOwn is WriteTo for bytes that tell as much of the program as its trace: others may not read the file, either.
func (c *Console) WriteOwn(path string, force bool, produce func(io.Writer) error) error {
	return c.writeAll([]string{path}, force, sanitize.Bytes, 0o600, func(w []io.Writer) error { return produce(w[0]) })
}

// WriteAll is WriteTo for several files, which get their names when all of them are whole.
func (c *Console) WriteAll(paths []string, force bool, form sanitize.Form, produce func([]io.Writer) error) error {
	return c.writeAll(paths, force, form, 0o666, produce)
}

func (c *Console) writeAll(paths []string, force bool, form sanitize.Form, mode fs.FileMode,
	produce func([]io.Writer) error) (err error) {
	var outs []*destination
	defer func() {
		if err != nil {
			for _, out := range outs {
				out.discard()
			}
		}
	}()
	var writers []io.Writer
	var flush []func() error
	for _, path := range paths {
		out, err := c.openDestination(path, force, form, mode)
		if err != nil {
			return err
		}
		safe := sanitize.NewWriter(out, form)
		columns := 0
		if (form == sanitize.Lines || form == sanitize.Colored) && out.file == c.Stdout {
			columns = Columns(c.Stdout)
		}
		fit := NewFittingWriter(safe, columns)
		outs, writers = append(outs, out), append(writers, fit)
		flush = append(flush, fit.Flush, safe.Flush)
	}
	err = produce(writers)
	for _, f := range flush {
		err = errors.Join(err, f())
	}
	if err != nil {
		return writtenSoFar(outs, err)
	}
	for _, out := range outs {
		if err := out.finish(); err != nil {
			return err
		}
	}
	for _, out := range outs {
		if err := out.place(); err != nil {
			return err
		}
	}
	return nil
}

// writtenSoFar serves readers in spite of an error: who closes a pipe early has still been served, and what was already
// written must not be discarded. It returns the error under the names that users know.
func writtenSoFar(outs []*destination, err error) error {
	for _, out := range outs {
		if out.temp == "" {
			_ = out.Flush()
		}
		err = WriteError(out.file, out.name, err)
	}
	return err
}

package tracefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"memtrace/internal/cli"
	"memtrace/internal/importer"
	"memtrace/internal/runprofile"
	"memtrace/internal/safefile"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// Open opens a trace, together with the spool that its process may have left beside it, and warns of what only looks
// like one. Its errors contain the file's name and what to do.
func Open(c *cli.Console, path string) (*spool.Run, error) {
	run, err := OpenAgain(path)
	if err != nil {
		return nil, err
	}
	if err := run.NotSpool(); err != nil {
		why := ": no recorder made it, so"
		if !errors.Is(err, safefile.ErrNotRegular) {
			why = ";"
		}
		c.Log.Warn().Msgf("%v%s it is left alone; %s is read without it", OpenError(path, err), why, path)
	}
	return run, nil
}

// OpenAgain is Open without the warning.
func OpenAgain(path string) (*spool.Run, error) {
	run, err := spool.OpenRun(path)
	if err != nil {
		return nil, OpenError(path, err)
	}
	return run, nil
}

// OpenError returns why a trace could not be opened, and what the user can do about it.
func OpenError(path string, err error) error {
	var pathError *fs.PathError
	switch {
	case path == "-" && errors.Is(err, fs.ErrNotExist):
		return errStandardInput
	case errors.Is(err, trace.ErrNotTrace),
		errors.Is(err, trace.ErrEmpty) && strings.HasSuffix(path, runprofile.Suffix):
		return notTrace(path)
	case errors.Is(err, spool.ErrNotSpool), errors.Is(err, spool.ErrVersion):
		// these name the file, which may be the one beside path
		return fmt.Errorf("%w; a spool can be read by the memtrace whose library wrote it", err)
	case errors.As(err, &pathError) && errors.Is(err, safefile.ErrLink):
		return fmt.Errorf("%s: %w; name the file that it leads to", pathError.Path, pathError.Err)
	case errors.As(err, &pathError) && errors.Is(err, safefile.ErrNotRegular) && !errors.Is(err, safefile.ErrDirectory):
		return fmt.Errorf("%s: %w; copy what it gives to a file", pathError.Path, pathError.Err)
	case errors.As(err, &pathError):
		return fmt.Errorf("%s: %w", pathError.Path, pathError.Err)
	case strings.HasPrefix(err.Error(), path+":"):
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// notTrace returns what the user can do about a file that is no trace.
func notTrace(path string) error {
	p, err := OpenProfile(path)
	switch {
	case p != nil:
		p.Close()
		return fmt.Errorf("%s: a profile, which has no events; name the trace that it was made of", path)
	case err != nil:
		return err
	}
	if f := foreignFormat(path); f != nil {
		return fmt.Errorf(
			"%s: not a trace, but a file that can be imported as %s; type: memtrace import %s -o imported.bin",
			path, f.Name, cli.ShellWord(path))
	}
	return fmt.Errorf("%s: offset 0: %w; name a file that 'memtrace run' or libmemtrace.so wrote", path,
		trace.ErrNotTrace)
}

// ReadError words a failure of the disk or the network file system while a trace was read. Damage in the file itself is
// not an error, see trace.Health.
func ReadError(path string, run *spool.Run, err error) error {
	return fmt.Errorf("%s: offset %d: %w; copy the file and try again", path, run.Offset(), err)
}

// OpenPlain prefers the plain file where no spool continues it: only there the text can show where blocks of events
// end, and is then, whole, the text of exactly this file.
func OpenPlain(c *cli.Console, path string, partly bool) (trace.Source, func() error, error) {
	run, err := Open(c, path)
	if err != nil {
		return nil, nil, err
	}
	if partly || run.HasSpool() {
		return run, run.Close, nil
	}
	defer run.Close()
	file, err := safefile.Open(path)
	if err != nil {
		return nil, nil, OpenError(path, err)
	}
	reader, err := trace.NewReader(file, run.Size())
	if err != nil {
		return nil, nil, errors.Join(OpenError(path, err), file.Close())
	}
	return reader, file.Close, nil
}

// RefuseSame keeps a file, and the spool of a trace, from being replaced by what was made of it, even with --force.
func RefuseSame(path, output string) error {
	to, err := os.Stat(output)
	if err != nil {
		return nil
	}
	for _, input := range []string{path, path + spool.Extension} {
		if from, err := os.Stat(input); err == nil && os.SameFile(from, to) {
			return fmt.Errorf("%s is the input; name another file", output)
		}
	}
	return nil
}

// importHint is how much of a file is read when it is not a trace.
const importHint = 1 << 20

// foreignFormat returns the format that the beginning of a file is in, nil if it cannot be imported.
func foreignFormat(path string) *importer.Format {
	file, err := safefile.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	content, size, err := importer.Unpack(file, size, nil, importHint)
	if err != nil {
		return nil
	}
	format, _ := importer.Recognize(content, min(size, importHint))
	return format
}

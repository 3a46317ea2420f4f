package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"memtrace/trace"
	"memtrace/trace/spool"
)

// openTrace opens a trace, together with the spool that its process may have left beside it. Its errors name the file and say what to do.
func openTrace(path string) (*spool.Run, error) {
	run, err := spool.OpenRun(path)
	if err != nil {
		return nil, openError(path, err)
	}
	return run, nil
}

func openError(path string, err error) error {
	var pathError *fs.PathError
	switch {
	case errors.Is(err, trace.ErrNotTrace):
		return fmt.Errorf("%s: offset 0: %w; name a file that 'memtrace run' or libmemtrace.so wrote", path, trace.ErrNotTrace)
	case errors.Is(err, spool.ErrNotSpool), errors.Is(err, spool.ErrVersion):
		return fmt.Errorf("%w; a spool can be read by the memtrace whose library wrote it", err) // these name the file, which may be the one beside path
	case errors.As(err, &pathError):
		return fmt.Errorf("%s: %w", pathError.Path, pathError.Err)
	case strings.HasPrefix(err.Error(), path+":"):
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// readError words a failure of the disk or the network file system while a trace was read. Damage in the file itself is no error, see trace.Health.
func readError(path string, run *spool.Run, err error) error {
	return fmt.Errorf("%s: offset %d: %w; copy the file and try again", path, run.Offset(), err)
}

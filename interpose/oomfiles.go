package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"memtrace/internal/render/layout"
	"memtrace/internal/safefile"
)

// maxSidecarNumber is the highest number that the files may get where lower ones are taken.
const maxSidecarNumber = 1000

// oomReportFile is a file of this process that grows: one text and one JSON list hold all OOMs.
type oomReportFile struct {
	file *os.File
	size int64 // of what is whole
}

// add writes text over the tail that the file ends with, in one call. A part that does not fit on the disk is removed
// and the tail restored; the file itself is removed if there was nothing in it before.
func (f *oomReportFile) add(text, tail string) error {
	at := f.size - int64(len(tail))
	_, err := f.file.WriteAt([]byte(text), at)
	if err == nil {
		f.size = at + int64(len(text))
		return nil
	}
	if f.size == 0 {
		return errors.Join(err, os.Remove(f.file.Name()), f.file.Close())
	}
	_, restored := f.file.WriteAt([]byte(tail), at)
	return errors.Join(err, restored, f.file.Truncate(f.size))
}

// oomFiles are the files beside the trace: TRACE.oom.N.txt and TRACE.oom.N.json, N being the first number that is free.
type oomFiles struct {
	text, json *oomReportFile
	retries    []string // what came afterwards, as JSON
}

const jsonHead = `{"schema":"memtrace.oom/1","events":[` + "\n"

// tail follows the last event of the JSON file.
func (f *oomFiles) tail() string {
	if len(f.retries) == 0 {
		return "\n]}\n"
	}
	return "\n],\"retries\":[\n" + strings.Join(f.retries, ",\n") + "\n]}\n"
}

// write adds one OOM and returns the path of the text. section is the same as JSON, or "". A JSON file that cannot be
// written is skipped.
func (f *oomFiles) write(tracePath string, text []byte, section string) (string, error) {
	if f.text == nil {
		if err := f.create(tracePath); err != nil {
			return "", err
		}
	} else {
		text = append([]byte("\n\n"), text...)
	}
	if err := f.text.add(string(text), ""); err != nil {
		if f.text.size == 0 {
			f.text = nil
		}
		return "", err
	}
	if f.json != nil && section != "" {
		begin, tail := jsonHead, ""
		if f.json.size > 0 {
			begin, tail = ",\n", f.tail()
		}
		if f.json.add(begin+section+f.tail(), tail) != nil && f.json.size == 0 {
			f.json = nil
		}
	}
	return f.text.file.Name(), nil
}

// writeAfter adds what followed an OOM to its files; without them it does nothing. An empty text is not written.
func (f *oomFiles) writeAfter(text []byte, section string) error {
	if f.text == nil {
		return nil
	}
	if f.json != nil && f.json.size > 0 {
		before := f.tail()
		f.retries = append(f.retries, section)
		if err := f.json.add(f.tail(), before); err != nil {
			f.retries = f.retries[:len(f.retries)-1]
			return err
		}
	}
	if len(text) == 0 {
		return nil
	}
	return f.text.add("\n\n"+string(text), "")
}

// create makes both files. One that is there is kept, and nothing is written through a link.
func (f *oomFiles) create(tracePath string) error {
	for number := 1; number <= maxSidecarNumber; number++ {
		base := tracePath + ".oom." + strconv.Itoa(number)
		text, err := createOOMReport(base + ".txt")
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.text = text
		f.json, _ = createOOMReport(base + ".json")
		return nil
	}
	return fmt.Errorf("%s.oom.%d.txt and all lower numbers are taken", tracePath, maxSidecarNumber)
}

func createOOMReport(path string) (*oomReportFile, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &oomReportFile{file: file}, nil
}

// recognizedIn is how many bytes at the beginning of a file tell whether it is one of these: the first event at least.
const recognizedIn = 1 << 20

// removeOOMFiles removes the files beside a trace that was replaced, which tell of the run before: what this user's
// recorder wrote for a trace of that name. Other files of these names stay.
func removeOOMFiles(tracePath string, owner uint64) {
	for number := 1; number <= maxSidecarNumber; number++ {
		base := tracePath + ".oom." + strconv.Itoa(number)
		text := removeIf(base+".txt", owner, func(text string) bool { return isOOMText(text, tracePath) })
		events := removeIf(base+".json", owner, func(text string) bool { return strings.HasPrefix(text, jsonHead) })
		if !text && !events {
			return
		}
	}
}

// isOOMText reports whether a text was written beside a trace of that name: it says how to read that one.
func isOOMText(text, tracePath string) bool {
	return strings.Contains(text, "memtrace report --at oom "+layout.ShellWord(tracePath)+"\n")
}

// removeIf removes a regular file of that owner if its content is ours, and reports whether there was a file.
func removeIf(path string, owner uint64, ours func(text string) bool) (found bool) {
	file, err := safefile.OpenUnlinked(path, safefile.MaxSize)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return true
	}
	id := safefile.IdentityOf(st)
	text := make([]byte, min(st.Size(), recognizedIn))
	if n, _ := file.ReadAt(text, 0); id.Owner == owner && ours(string(text[:n])) {
		_ = safefile.Remove(path, id) // what stays is only old
	}
	return true
}

package importer

import (
	"bytes"
	"errors"
	"io"
	"regexp"

	"memtrace/trace"
)

// The GPU memory profiler that was proposed for MXNet appends a line for each allocation, without a heading: a tag, a
// comma, and the size in MiB.
//
//	in_arg:fc1_weight,1.53125

const tagSizesKind = "CSV of the GPU memory profiler proposed for MXNet"

// tagSize reads a line. A tag may hold commas.
func tagSize(line []byte) (tag string, size uint64, err error) {
	at := bytes.LastIndexByte(line, ',')
	if at < 0 {
		return "", 0, errors.New("a line is a tag, a comma and a size in MiB, such as in_arg:fc1_weight,1.53")
	}
	tag = string(bytes.TrimSpace(line[:at]))
	if commaNumber.MatchString(tag) {
		return "", 0, errTwoNumbers
	}
	size, err = bytesOf(string(line[at+1:]), mebibyte)
	return tag, size, err
}

// commaNumber is a tag that ends like a number which a decimal comma goes on with.
var commaNumber = regexp.MustCompile(`,[0-9]+$`)

// recognizedRows is how many lines must be of a kind, if there are that many.
const recognizedRows = 8

func isTagSizes(file *io.SectionReader) bool {
	l, seen := newLines(file), 0
	for seen < recognizedRows {
		line, ok := l.next()
		if !ok {
			break
		}
		if len(line) == 0 && !l.long {
			continue
		}
		if tag, _, err := tagSize(line); err != nil && !l.ended && seen > 0 {
			break // cut
		} else if err != nil || l.long || bytes.ContainsAny(line, "\x00\"") || smiField.MatchString(splitSMI(tag,
			",")[0]) {
			return false
		}
		seen++
	}
	return seen > 0 && l.err == nil
}

func readTagSizes(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	r, l := newRows(out, trace.Info{KindKey: tagSizesKind}), newLines(file)
	lacks := []string{
		"The file lists what MXNet's pools took from the device, with the size in MiB as text: no times (records are 1 µs apart), no frees, no addresses, no call stacks, no threads, one device for all; " +
			"pinned host memory is counted as if it were the device's, and attempts that failed as if they had not. Figures are sums of all that was ever taken."}
	for {
		line, ok := l.next()
		if !ok {
			break
		}
		if len(line) == 0 && !l.long {
			continue
		}
		tag, size, err := tagSize(line)
		if !l.ended && !l.long && r.events > 0 { // also one whose size is a number: of that, digits may be missing
			lacks = append(lacks, cutLine)
			break
		}
		if err == nil {
			err = r.block(tag, 0, size, nil)
		}
		if err != nil {
			return Result{}, l.bad(line, err)
		}
	}
	if l.err != nil {
		return Result{}, l.err
	}
	if r.events == 0 {
		return Result{}, errors.New("no line has a tag and a size in MiB")
	}
	return r.close(tagSizesKind, "no times, frees, call stacks or addresses", lacks)
}

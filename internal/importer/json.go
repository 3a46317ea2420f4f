package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// jsonReader reads JSON as an unpickler reads pickles: it passes each value to a taker as soon as it is complete.
type jsonReader struct {
	decoder *json.Decoder
	to      taker
	stack   []any
}

// jsonDepth bounds how deeply lists and dictionaries are nested. Those of snapshots are 7 deep.
const jsonDepth = 64

func newJSON(r io.Reader, to taker) *jsonReader {
	j := &jsonReader{decoder: json.NewDecoder(r), to: to}
	j.decoder.UseNumber()
	return j
}

// snapshotStart is how JSON begins that holds segments of an allocator or its history.
var snapshotStart = regexp.MustCompile(`^\s*[\[{](?s:.*)"(segments|device_traces|total_size|segment_type)"\s*:`)

// isJSON looks for the keys of a snapshot in the beginning of a file.
func isJSON(file io.ReaderAt) bool {
	start := make([]byte, 1<<14)
	n, _ := file.ReadAt(start, 0)
	return snapshotStart.Match(start[:n])
}

// read returns the only value of a file.
func (j *jsonReader) read() (any, error) {
	v, err := j.value()
	if err == nil && j.decoder.More() {
		err = errors.New("more follows behind its value")
	}
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("cut at offset %d: the JSON has no end; copy the whole file", j.decoder.InputOffset())
	case errors.Is(err, errSegments):
		return nil, err
	}
	return nil, fmt.Errorf("damaged at offset %d: %w", j.decoder.InputOffset(), err)
}

func (j *jsonReader) value() (any, error) {
	token, err := j.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(token.String(), 10, 64); err == nil {
			return int64(n), nil
		}
		return token.Float64()
	case json.Delim:
		if len(j.stack) > 2*jsonDepth {
			return nil, errors.New("lists and dictionaries lie too deep in each other")
		}
		if token == '[' {
			return j.list()
		}
		return j.dict()
	}
	return token, nil
}

func (j *jsonReader) list() (any, error) {
	l := &list{}
	j.stack = append(j.stack, l)
	for j.decoder.More() {
		v, err := j.value()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, j.to.finish(v))
		if err := j.to.filled(j.stack, l); err != nil {
			return nil, err
		}
	}
	j.stack = j.stack[:len(j.stack)-1]
	_, err := j.decoder.Token()
	return l, err
}

func (j *jsonReader) dict() (any, error) {
	d := &dict{}
	j.stack = append(j.stack, d)
	for j.decoder.More() {
		key, err := j.decoder.Token()
		if err != nil {
			return nil, err
		}
		j.stack = append(j.stack, key)
		v, err := j.value()
		if err != nil {
			return nil, err
		}
		j.stack = j.stack[:len(j.stack)-1]
		d.pairs = append(d.pairs, key, j.to.finish(v))
	}
	j.stack = j.stack[:len(j.stack)-1]
	_, err := j.decoder.Token()
	return d, err
}

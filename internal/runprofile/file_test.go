package runprofile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"memtrace/internal/guest"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
)

// TestDamage: a profile that is cut anywhere, that has bytes behind it, or is of another version, is refused in one
// sentence, and a changed byte never changes what is read.
func TestDamage(t *testing.T) {
	_, data := madeOf(t, guest.ReportTraces(t)["training.txtar trace"])
	wantHead, wantBody, err := read(data)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, data []byte, want string) {
		t.Helper()
		if _, _, err := read(data); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", what, err, want)
		}
	}
	for n := len(magic); n < len(data); n++ {
		refused("cut", data[:n], "a profile that is cut")
	}
	refused("bytes behind", append(bytes.Clone(data), 0), "a profile with 1 bytes behind its end")
	changed := bytes.Clone(data)
	changed[7] = 9
	refused("version", changed, "a profile of version 9; this memtrace reads version 1")
	for n := headerSize; n < len(data); n += 7 {
		changed := bytes.Clone(data)
		changed[n] ^= 0x10
		if head, body, err := read(changed); err == nil && (!reflect.DeepEqual(head, wantHead) ||
			!reflect.DeepEqual(body, wantBody)) { // how it is packed may be told in several ways
			t.Errorf("byte %d is changed, and so is what is read", n)
		} else if err != nil && !strings.Contains(err.Error(), "damaged") {
			t.Errorf("byte %d is changed: %v", n, err)
		}
	}
	huge := bytes.Clone(data)
	binary.LittleEndian.PutUint32(huge[8:], 1<<31)
	refused("huge", huge, "67108864 are allowed")
}

// TestBomb: a part that is larger than any profile's when it is unpacked takes no memory.
func TestBomb(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	bomb := enc.EncodeAll(bytes.Repeat([]byte(" "), maxHeadText+1), nil)
	file := append([]byte(magic), version)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(bomb)))
	file = append(binary.LittleEndian.AppendUint32(file, 0), bomb...)
	if _, _, err := read(file); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

// TestStackID: every frame of a stack counts, and their order.
func TestStackID(t *testing.T) {
	frames := []Frame{{Function: "forward", Place: "net/blocks.py", Line: 7, User: true},
		{Function: "at::empty", Native: true}}
	want := stackID(frames)
	for i := range frames {
		changed := append([]Frame{}, frames...)
		changed[i].Line++
		if stackID(changed) == want {
			t.Errorf("the line of frame %d does not count", i)
		}
	}
	if stackID(frames[:1]) == want || stackID([]Frame{frames[1], frames[0]}) == want {
		t.Error("the number or the order of frames does not count")
	}
}

// TestNothingIsTakenForGranted: whatever part of a body is missing, empty or of another size, there is a report or an
// error, and no panic. Fuzzing seldom finds such bodies, whose JSON is right.
func TestNothingIsTakenForGranted(t *testing.T) {
	p, _ := madeOf(t, guest.ReportTraces(t)["training.txtar trace"])
	text, err := json.Marshal(&p.Body)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	options, tried := sourceOf(t, guest.Encoded(t, "trace version=1\n")).Options, 0
	try := func(path string) {
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %v", path, r)
			}
		}()
		var body Body
		tried++
		if json.Unmarshal(text, &body) != nil || body.check() != nil {
			return
		}
		o := options
		o.Own = body.Own
		if s, err := body.Answer(&o); err == nil {
			_ = render.Text(io.Discard, s, layout.Options{Details: true})
			_ = render.JSON(io.Discard, s)
		}
	}
	spoil(tree, "", try)
	if tried < 500 {
		t.Errorf("%d bodies are too few", tried)
	}
}

// spoil replaces each part of a tree by others, one at a time, and calls try with the part's path. Of a list, it does
// so with the first element.
func spoil(node any, path string, try func(path string)) {
	replace := func(path string, old any, set func(any)) {
		others := []any{nil}
		switch old.(type) {
		case []any:
			others = append(others, []any{})
		case map[string]any:
			others = append(others, map[string]any{})
		case float64:
			others = append(others, 1<<40)
		}
		for _, other := range others {
			set(other)
			try(path)
		}
		set(old)
		spoil(old, path, try)
	}
	switch node := node.(type) {
	case map[string]any:
		for key, old := range node {
			replace(path+"."+key, old, func(v any) { node[key] = v })
		}
	case []any:
		for i, old := range node {
			if i == 0 {
				replace(path+"[]", old, func(v any) { node[i] = v })
			}
		}
	}
}

// FuzzBody: a report of a body that says anything is written, or it is refused in one sentence.
func FuzzBody(f *testing.F) {
	for name, raw := range guest.ReportTraces(f) {
		if strings.Contains(name, "lost") || name == "training.txtar trace" || name == "short.txtar trace" {
			p, _ := madeOf(f, raw)
			body, err := json.Marshal(&p.Body)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(body)
		}
	}
	options := sourceOf(f, guest.Encoded(f, "trace version=1\n")).Options
	f.Add([]byte("{}"))
	f.Add([]byte(`{"summary":{"trend":{"kind":"steady"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var body Body
		if json.Unmarshal(text, &body) != nil {
			return
		}
		err := body.check()
		if err == nil {
			o := options
			o.Own = body.Own
			if s, answerErr := body.Answer(&o); answerErr != nil {
				err = answerErr
			} else if err := render.Text(io.Discard, s, layout.Options{Details: true}); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("%q is not one sentence", err)
		}
	})
}

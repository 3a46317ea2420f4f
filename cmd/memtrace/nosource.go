package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"memtrace/trace"
	"memtrace/trace/scrub"
)

// pseudonymous makes anonymized copies of traces for as long as a page is made of them. The same name has the same
// pseudonym in all of them, and nobody can find out by trying which name that is: the key is forgotten.
type pseudonymous struct {
	dir string
	key []byte
}

func newPseudonymous() (*pseudonymous, error) {
	dir, err := os.MkdirTemp("", "memtrace-html-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the trace without names: %w; set TMPDIR to a folder that can be written", err)
	}
	p := &pseudonymous{dir: dir, key: make([]byte, scrub.MinKey)}
	_, _ = rand.Read(p.key) // never fails: see crypto/rand
	return p, nil
}

func (p *pseudonymous) remove() { _ = os.RemoveAll(p.dir) }

// copy returns the path of a copy. number tells copies of one name apart.
func (p *pseudonymous) copy(a *app, path string, number int) (string, error) {
	source, closeSource, err := a.openDump(path, false)
	if err != nil {
		return "", err
	}
	defer closeSource()
	folder := filepath.Join(p.dir, fmt.Sprint(number))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	edit, err := scrub.NewAnonymizer(scrub.Strip{KeepSymbols: true, KeepLines: true, Counts: make(scrub.Counts)}, p.key)
	if err != nil {
		return "", err
	}
	to := filepath.Join(folder, filepath.Base(path))
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer file.Close()
	out, err := trace.NewWriter(file, trace.WriterOptions{})
	if err == nil {
		err = trace.Copy(out, source, edit)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return to, nil
}

// sources are the traces that a page is made of: those that were named, or with --no-source copies without names. The
// caller calls done.
func (f *htmlFlags) sources(a *app, named ...string) (read []string, done func(), err error) {
	done = func() {}
	var copies *pseudonymous
	if f.noSource {
		if copies, err = newPseudonymous(); err != nil {
			return nil, done, err
		}
		done = copies.remove
	}
	for i, arg := range named {
		path, err := oneInput(arg)
		if err == nil && f.noSource {
			path, err = copies.copy(a, path, i)
		}
		if err != nil {
			return nil, done, err
		}
		read = append(read, path)
	}
	return read, done, nil
}

package main

import (
	"os"
	"strings"
	"testing"
)

func TestFormatDocumentIsFresh(t *testing.T) {
	text, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := refresh(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if fresh != string(text) {
		t.Error("docs/format.md differs from the event table: run go generate ./trace")
	}
}

func TestRefreshReplacesStaleTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	stale := strings.Replace(string(text), "| alloc |", "| allocation |", 1)
	if stale == string(text) {
		t.Fatal("the document has no row for alloc")
	}
	if fresh, err := refresh(stale); err != nil || fresh != string(text) {
		t.Errorf("a stale table was not replaced: %v", err)
	}
	if _, err := refresh(strings.Replace(string(text), "<!-- generated:fields -->", "", 1)); err == nil {
		t.Error("a missing marker gave no error")
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestJSONIsPlain: no character that a terminal acts on stands raw in what --json prints; it says the same.
func TestJSONIsPlain(t *testing.T) {
	const words = "\u009b2J\u202egate passed\u007f <é>"
	for name, write := range map[string]func(a *app) error{
		"a document": func(a *app) error { return a.Document(map[string]string{"x": words}) },
		"a line":     func(a *app) error { return a.JSONLine(map[string]string{"x": words}) },
		"as it is": func(a *app) error {
			return a.JSONLine(map[string]json.RawMessage{"x": json.RawMessage("\"" + words + "\"")})
		},
	} {
		var out bytes.Buffer
		if err := write(newApp(nil, nil, &out, nil)); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["x"] != words || strings.ContainsAny(out.String(), "\u009b\u202e\u007f") || !strings.Contains(out.String(), "<é>") {
			t.Errorf("%s: %q %v", name, out.String(), err)
		}
	}
}

// TestOneEncoder: what --json prints goes through document and jsonLine; nothing else encodes to the output.
func TestOneEncoder(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 45 {
		t.Fatal(err, len(files))
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		if regexp.MustCompile(`json\.NewEncoder\((a\.out|os\.Stdout|cmd\.OutOrStdout)`).Match(text) {
			t.Errorf("%s encodes JSON to the output by itself: use document or jsonLine", f)
		}
	}
}

package prompt

import (
	"bytes"
	"encoding/json"
	"strings"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Input is one file that a step may read.
type Input struct {
	Path  string // as the agent can open it from its worktree
	There bool
}

// TextFile is a file with its text, which is data.
type TextFile struct {
	Path string
	Text string
	Why  string // why there is no text: it is missing, binary, a folder
}

// Note is a word to the agent that comes from elsewhere (a person's answer, the data of a task): data.
type Note struct{ From, Text string }

// whole tells what the workflow is for.
func (p *page) whole(description string) {
	if description != "" {
		p.text("\nThe workflow as a whole:\n")
		p.prose(description, maxDescription)
	}
}

// context lists what is to be read first.
func (p *page) context(files []string) {
	if len(files) > 0 {
		p.section("Read first")
		p.text("Read these files before anything else; they say how work is done here.\n")
		p.list(codes(files))
	}
}

// inputs lists what earlier work left.
func (p *page) inputs(inputs []Input) {
	if len(inputs) == 0 {
		return
	}
	p.section("Inputs")
	p.text("What earlier work left for you. Read these files.\n")
	items := make([]string, 0, len(inputs))
	for _, in := range inputs {
		item := text.Code(in.Path)
		if !in.There {
			item += " (nothing there yet)"
		}
		items = append(items, item)
	}
	p.list(items)
}

func (p *page) notes(notes []Note) {
	if len(notes) == 0 {
		return
	}
	p.section("Notes")
	if len(notes) > maxNotes {
		p.text("(%d older notes are left out.)\n", len(notes)-maxNotes)
		notes = notes[len(notes)-maxNotes:]
	}
	for i, n := range notes {
		if i > 0 {
			p.raw("\n")
		}
		p.raw(text.Data(n.From, n.Text, maxNote))
	}
}

// CriterionWords is a criterion as a line of Markdown.
func CriterionWords(c engine.Criterion) string {
	switch {
	case c.Command != nil:
		return text.Code(gates.CommandWords(*c.Command)) + " exits 0"
	case c.File != "" && c.NonEmpty:
		return "file " + text.Code(c.File) + ofRoot(c.File) + " exists and is non-empty"
	case c.File != "":
		return "file " + text.Code(c.File) + ofRoot(c.File) + " exists"
	}
	return text.RevealLine(c.Text, maxCriterion) + " (a reviewer judges this)"
}

// ofRoot tells the agent in a worktree that a path is not below its own folder.
func ofRoot(p string) string {
	if layout.IsState(p) {
		return " (in the root of the repo)"
	}
	return ""
}

func schemaBlock(schema *engine.Schema) string {
	return strings.Replace(text.Data("The schema", indented(schema.Source), maxSchemaShown), "`data\n", "`json\n", 1)
}

// indented is JSON for a person's eye; what is no JSON stays as it is.
func indented(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// whereAnswer says where an answer is written so that it is found and known to be this attempt's.
func whereAnswer(path, word string) string {
	at := "the file that the environment variable `SLUICE_ANSWER` names"
	if path != "" {
		at = "the file " + text.Code(path) + " (the environment variable `SLUICE_ANSWER` names it too)"
	}
	return "Write the " + word + " to " + at + ", and put a key `\"token\"` with the value of the environment variable `SLUICE_TOKEN` at its top: " +
		"without it the file does not count. If you cannot write that file, end your last message with the " + word + " in one fenced block that begins with ```json. " +
		"Strict JSON: each key once, no comments.\n"
}

package tasks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

const sample = `{
  "schema_version": 1,
  "project": {"name": "P", "root": "."},
  "tasks": [
    {"id": "T1", "title": "one", "priority": 2, "status": "todo", "mine": {"a": [1, "}"]}},
    {
      "id": "T2",
      "status": "doing",
      "depends_on": ["T1"],
      "summary": "old"
    }
  ],
  "mine": [1, 2]
}
`

func TestRead(t *testing.T) {
	f, fault := Read([]byte(sample))
	if fault != nil {
		t.Fatal(fault)
	}
	if got := fmt.Sprint(f.Tasks[0].ID, f.Tasks[0].Priority, f.Tasks[0].Status, f.Tasks[1].ID, f.Tasks[1].Priority == NoPriority, f.Tasks[1].Status, f.Tasks[1].DependsOn); got != "T12todoT2truedoing[T1]" {
		t.Error(got)
	}
	if !json.Valid(f.Tasks[0].Body) || !strings.Contains(string(f.Tasks[0].Body), `"mine"`) {
		t.Errorf("body %s", f.Tasks[0].Body)
	}
}

// TestTheDocumentsFile: document 001's own example of a task file is read, with the task that it depends on; when its task is
// done, all else that stands there stays.
func TestTheDocumentsFile(t *testing.T) {
	conform.Rule(t, "001 file.example", "the document's, with its T002")
	conform.Rule(t, "001 file.fields", "each of the document's fifteen")
	const other = `{"id": "T002", "title": "the other", "priority": 2, "status": "done"}`
	src := `{
  "schema_version": 1,
  "project": {
    "name": "Project Name",
    "root": "."
  },
  "source_files": ["README.md"],
  "tasks": [
    {
      "id": "T001",
      "title": "Task title",
      "description": "Detailed description",
      "reference": "path/to/relevant/files",
      "priority": 1,
      "status": "todo",
      "details": "Implementation notes",
      "steps": ["Step 1", "Step 2"],
      "blockers": ["Blocking issue description"],
      "tags": ["category", "feature"],
      "files": ["file1.go", "file2.go"],
      "depends_on": ["T002"],
      "created_at": "2024-01-01T00:00:00Z",
      "updated_at": "2024-01-01T00:00:00Z"
    },
    ` + other + `
  ]
}
`
	f, fault := Read([]byte(src))
	if fault != nil {
		t.Fatal(fault)
	}
	if x := f.Tasks[0]; x.ID != "T001" || x.Title != "Task title" || x.Priority != 1 || x.Status != "todo" || len(x.DependsOn) != 1 || len(f.Tasks) != 2 {
		t.Errorf("%+v", f.Tasks)
	}
	out, _ := f.With([]Change{{ID: "T001", Status: "done"}}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	want := strings.Replace(src, `"status": "todo"`, `"status": "done"`, 1)
	want = strings.Replace(want, `"updated_at": "2024-01-01T00:00:00Z"`, `"updated_at": "2026-01-02T03:04:05Z"`, 1)
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if _, fault := Read([]byte(strings.Replace(src, ",\n    "+other, "", 1))); fault == nil || !strings.Contains(fault.Why, "T002, which does not exist") {
		t.Errorf("without its T002: %v", fault)
	}
}

func TestFaultsNameTheirLine(t *testing.T) {
	conform.Rule(t, "001 validate.schema", "each kind of fault, with its line")
	conform.Rule(t, "001 validate", "of three tasks in a circle, of itself, of one that is not there")
	for name, c := range map[string]struct {
		src, why string
		line     int
	}{
		"no JSON":    {"{\n\"tasks\": [\n}\n", "not a JSON object", 3},
		"no tasks":   {`{"schema_version": 1}`, `"tasks" is missing`, 1},
		"version":    {"{\n\"schema_version\": 2, \"tasks\": []}", "schema_version 2", 2},
		"no id":      {"{\"tasks\": [\n{\"title\": \"x\"}]}", "is missing", 2},
		"bad id":     {"{\"tasks\": [\n{\"id\": \"../x\"}]}", "is not an id", 2},
		"status":     {"{\"tasks\": [{\"id\": \"a\",\n\"status\": \"open\"}]}", "want todo, doing, done or blocked", 2},
		"case":       {"{\"tasks\": [{\"id\": \"a\",\n\"Status\": \"done\"}]}", "task 1 of the list: key Status: write status", 2},
		"twice":      {"{\"tasks\": [{\"id\": \"a\"},\n{\"id\": \"a\"}]}", "twice: the first is on line 1", 2},
		"missing":    {"{\"tasks\": [{\"id\": \"a\",\n\"depends_on\": [\"b\"]}]}", "a depends on b, which does not exist", 2},
		"cycle":      {"{\"tasks\": [{\"id\": \"a\", \"depends_on\": [\"b\"]},\n{\"id\": \"b\",\n\"depends_on\": [\"a\"]}]}", "a -> b -> a", 1},
		"itself":     {"{\"tasks\": [\n{\"id\": \"a\", \"depends_on\": [\"a\"]}]}", "a -> a", 2},
		"priority":   {"{\"tasks\": [\n{\"id\": \"a\", \"priority\": \"high\"}]}", "priority: want a whole number", 2},
		"doubled":    {`{"tasks": [], "tasks": []}`, "not a JSON object", 1},
		"no object":  {"{\"tasks\": [\n1]}", "task 1 of the list is not an object", 2},
		"tasks text": {`{"tasks": "x"}`, "want a list", 1},
	} {
		_, fault := Read([]byte(c.src))
		if fault == nil || !strings.Contains(fault.Why, c.why) || fault.Line != c.line {
			t.Errorf("%s: %v, want line %d: %s", name, fault, c.line, c.why)
		}
	}
}

func TestWithKeepsWhatItDoesNotKnow(t *testing.T) {
	f, fault := Read([]byte(sample))
	if fault != nil {
		t.Fatal(fault)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out, changed := f.With([]Change{{ID: "T1", Status: "done", Summary: "it <works>"}, {ID: "T2", Status: "doing"},
		{ID: "T1.1", Status: "todo", Body: json.RawMessage(`{"id": "T1.1", "title": "more"}`), For: "T1"}}, at)
	want := strings.Replace(sample, `"status": "todo", "mine": {"a": [1, "}"]}}`,
		`"status": "done", "mine": {"a": [1, "}"]}, "summary": "it <works>", "updated_at": "2026-01-02T03:04:05Z"}`, 1)
	want = strings.Replace(want, "    }\n  ],", "    },\n    {\"id\": \"T1.1\", \"title\": \"more\", \"status\": \"todo\", \"created_at\": \"2026-01-02T03:04:05Z\", \"updated_at\": \"2026-01-02T03:04:05Z\", \"stands_for\": \"T1\"}\n  ],", 1)
	if !changed || string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	g, fault := Read(out)
	if fault != nil {
		t.Fatal(fault)
	}
	if again, changed := g.With([]Change{{ID: "T1", Status: "done", Summary: "it <works>"}, {ID: "T2", Status: "doing"}, {ID: "T1.1", Status: "todo"}}, at); changed || string(again) != want {
		t.Errorf("written again it changes:\n%s", again)
	}
}

func TestWithOfAnEmptyList(t *testing.T) {
	f, fault := Read([]byte(`{"tasks": []}`))
	if fault != nil {
		t.Fatal(fault)
	}
	out, _ := f.With([]Change{{ID: "a", Status: "todo"}, {ID: "b", Status: "blocked", Body: json.RawMessage(`{}`)}}, time.Time{})
	if g, fault := Read(out); fault == nil || !json.Valid(out) {
		t.Errorf("%s: %v %v", out, g, fault) // b's body has no id: it is told, not lost
	}
	out, _ = f.With([]Change{{ID: "a", Status: "todo"}}, time.Time{})
	if g, fault := Read(out); fault != nil || len(g.Tasks) != 1 {
		t.Errorf("%s: %v", out, fault)
	}
}

// TestFormatIsBounded: what fmt makes of a task file is one still, however deep things lie in it.
func TestFormatIsBounded(t *testing.T) {
	for _, src := range []string{sample, `{"tasks":[]}`, ` {"tasks" : [ { "id":"a","x":{ },"y":[ ],"z":[[{}],"\"{[,:"] ,"n":-1.5e3,"b":[true,null]} ] } `} {
		if _, fault := Read([]byte(src)); fault != nil {
			t.Fatal(fault)
		}
		out := Format([]byte(src))
		if got := formattedSize([]byte(src)); got != len(out) {
			t.Errorf("%s: %d bytes foretold, %d there", out, got, len(out))
		}
		if got := formattedSize(out); got != len(out) || string(Format(out)) != string(out) {
			t.Errorf("%s: laid out twice: %d", out, got)
		}
	}
	deep := `{"tasks":[{"id":"a","x":` + strings.Repeat("[", 50) + "1" + strings.Repeat(",1", 200_000) + strings.Repeat("]", 50) + `}]}`
	if _, fault := Read([]byte(deep)); fault != nil {
		t.Fatal(fault)
	}
	if out := Format([]byte(deep)); out != nil {
		t.Errorf("%d bytes, of a file that may have %d", len(out), MaxBytes)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add(`{"tasks":[{"id":"a","status":"done","x":"\""},{"id":"b"}]}`)
	f.Fuzz(func(t *testing.T, src string) {
		file, fault := Read([]byte(src))
		if fault != nil {
			return
		}
		var changes []Change
		for _, x := range file.Tasks {
			changes = append(changes, Change{ID: x.ID, Status: "blocked", Summary: "s\n\"<"})
		}
		out, _ := file.With(append(changes, Change{ID: "new-one", Status: "todo"}), time.Unix(0, 0))
		again, fault := Read(out)
		if fault != nil || len(again.Tasks) < len(file.Tasks) {
			t.Fatalf("%q -> %q: %v", src, out, fault)
		}
		for _, x := range again.Tasks[:len(file.Tasks)] {
			if x.Status != "blocked" {
				t.Fatalf("%q -> %q", src, out)
			}
		}
	})
}

// BenchmarkTenThousandTasks is the text of a file of 10,000 tasks with every status changed: what is written, and what it
// costs to read it.
func BenchmarkTenThousandTasks(b *testing.B) {
	var s strings.Builder
	s.WriteString(`{"schema_version": 1, "tasks": [`)
	for i := range 10_000 {
		if i > 0 {
			s.WriteString(",\n")
		}
		fmt.Fprintf(&s, `{"id": "T%05d", "title": "do it", "status": "todo", "depends_on": ["T%05d"], "description": "%0200d"}`, i, max(i-1, 0), i)
	}
	s.WriteString("]}")
	src := []byte(strings.Replace(s.String(), `"depends_on": ["T00000"]`, `"depends_on": []`, 1))
	f, fault := Read(src)
	if fault != nil {
		b.Fatal(fault)
	}
	var changes []Change
	for _, t := range f.Tasks {
		changes = append(changes, Change{ID: t.ID, Status: "done", Summary: "it is done"})
	}
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			f.With(changes, time.Time{})
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			Read(src)
		}
	})
}

// What a run of stand-ins has done is marked; what was done before is not, and who does it really takes the mark away.
func TestStubbed(t *testing.T) {
	t.Parallel()
	src := `{"tasks": [{"id": "A"}, {"id": "B", "status": "done"}, {"id": "C", "status": "done", "stubbed": true}, {"id": "D", "stubbed": "mine"}]}`
	f, fault := Read([]byte(src))
	if fault != nil {
		t.Fatal(fault)
	}
	for i, want := range []bool{false, false, true, false} {
		if f.Tasks[i].Stubbed != want {
			t.Errorf("task %d: %v", i, f.Tasks[i].Stubbed)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := func(stubbed bool) (out []Change) {
		for _, id := range []string{"A", "B", "C"} {
			out = append(out, Change{ID: id, Status: "done", Stubbed: stubbed})
		}
		return append(out, Change{ID: "E", Status: "todo", Body: []byte(`{"id": "E"}`), Stubbed: stubbed})
	}
	stamp := `"updated_at": "2026-01-02T03:04:05Z"`
	got, _ := f.With(all(true), now)
	want := `{"tasks": [{"id": "A", "status": "done", "stubbed": true, ` + stamp + `}, {"id": "B", "status": "done"}, {"id": "C", "status": "done", "stubbed": true}, {"id": "D", "stubbed": "mine"},
    {"id": "E", "status": "todo", "created_at": "2026-01-02T03:04:05Z", ` + stamp + `, "stubbed": true}
  ]}`
	if string(got) != want {
		t.Errorf("stand-ins:\n%s\nwant\n%s", got, want)
	}
	if f, fault = Read(got); fault != nil {
		t.Fatal(fault)
	}
	got, _ = f.With(all(false), now)
	want = strings.ReplaceAll(want, `"stubbed": true`, `"stubbed": false`)
	want = strings.Replace(want, `"stubbed": false}, {"id": "D"`, `"stubbed": false, `+stamp+`}, {"id": "D"`, 1)
	if string(got) != want {
		t.Errorf("a real run:\n%s\nwant\n%s", got, want)
	}
}

// TestBlockers: what an agent says is in the way is the task's, until it is done.
func TestBlockers(t *testing.T) {
	conform.Rule(t, "13-law 001 blockers", "in the file: added, changed, and gone where the answer says that there are none")
	src := `{"tasks": [{"id": "A", "status": "doing"}, {"id": "B", "blockers": ["old"]}, {"id": "C", "blockers": ["mine"]}, {"id": "D", "blockers": ["key"], "status": "blocked"}]}`
	f, fault := Read([]byte(src))
	if fault != nil {
		t.Fatal(fault)
	}
	out, _ := f.With([]Change{{ID: "A", Status: "blocked", Blockers: []string{"no \"key\"", "b"}}, {ID: "B", Status: "todo", Blockers: []string{"new"}}, {ID: "C", Status: "todo"}, {ID: "D", Status: "done", Blockers: []string{}}}, time.Unix(0, 0))
	if f, fault = Read(out); fault != nil {
		t.Fatal(fault, string(out))
	}
	for i, want := range [][]string{{"no \"key\"", "b"}, {"new"}, {"mine"}, {}} {
		if got := f.Tasks[i].Blockers; !slices.Equal(got, want) {
			t.Errorf("%s: blockers %q, want %q in %s", f.Tasks[i].ID, got, want, out)
		}
	}
}

package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/folders"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tasks"
)

// taskWriter is as much of Work as reads and writes task files.
func taskWriter(dir string) *Work {
	l, notes := layout.Layout{Root: dir}, &health.Notes{}
	at, _ := folders.New(folders.Options{Layout: l, Notes: notes}) // without git nothing can fail
	return New(Options{Folders: at, Now: time.Now})
}

// TestTaskFileEditedMeanwhile: what a person wrote after the file was read is neither lost nor overlooked.
func TestTaskFileEditedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "to-do.json")
	put := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put(`{"tasks": [{"id": "A"}]}`)
	e := taskWriter(dir)
	read, err := e.taskFile("to-do.json")
	if err != nil {
		t.Fatal(err)
	}
	j := job.Job{Tasks: &job.TaskFile{Path: "to-do.json", Seen: read.stamp, Changes: []job.TaskChange{{ID: "A", Status: "done"}}}}
	const edit = `{"tasks": [{"id": "A"}, {"id": "B"}]}`
	put(edit)
	if _, err := e.rewrite(j, read); !errors.Is(err, atomicfile.ErrChanged) {
		t.Errorf("it was replaced: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != edit {
		t.Errorf("the edit is lost: %s", got)
	}
	e.Now = func() time.Time { put(`{"tasks": [{"id": "C"}]}`); return time.Now() } // the writing is under way by then
	read, err = e.taskFile("to-do.json")
	if err != nil {
		t.Fatal(err)
	}
	j.Tasks.Seen = read.stamp
	ev, ok := e.SaveTasks(t.Context(), j).(engine.TasksSeen)
	if !ok || len(ev.Tasks) != 3 || ev.Tasks[0].ID != "C" || ev.Tasks[0].Gone || !ev.Tasks[1].Gone || !ev.Tasks[2].Gone {
		t.Errorf("what was written meanwhile is not taken in: %+v", ev)
	}
}

// TestTaskFileEditedJustAfter: what a person writes the moment after our writing is not taken for it: it is still to be read.
func TestTaskFileEditedJustAfter(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "to-do.json")
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := taskWriter(dir)
	for n := range 200 {
		put(path, `{"tasks": [{"id": "A"}]}`)
		put(path+".new", `{"tasks": [{"id": "A"}, {"id": "B"}]}`)
		read, err := e.taskFile("to-do.json")
		if err != nil {
			t.Fatal(err)
		}
		j := job.Job{Tasks: &job.TaskFile{Path: "to-do.json", Seen: read.stamp, Changes: []job.TaskChange{{ID: "A", Status: "done"}}}}
		before, err := os.Lstat(path) // here: our writing may be over before the other begins
		if err != nil {
			t.Fatal(err)
		}
		edited := make(chan error, 1)
		go func() {
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
				if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) {
					edited <- errors.Join(err, os.Rename(path+".new", path))
					return
				}
			}
			edited <- errors.New("nothing was written")
		}()
		ev, ok := e.SaveTasks(t.Context(), j).(engine.TasksSaved)
		if err := <-edited; err != nil || !ok || ev.Why != "" {
			t.Fatalf("round %d: %+v, %v", n, ev, err)
		}
		if now, err := e.taskFile("to-do.json"); err != nil || now.stamp == ev.Stamp || len(now.seen) != 2 {
			t.Fatalf("round %d: the edit is overlooked: %+v, %v", n, now, err)
		}
	}
}

// TestTaskFileStaysReadable: what would make the file too large to be read is not written, and it is said why.
func TestTaskFileStaysReadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "to-do.json")
	full := `{"tasks": [{"id": "A", "status": "todo", "x": "` + strings.Repeat("x", tasks.MaxBytes-60) + `"}]}`
	if err := os.WriteFile(path, []byte(full), 0o644); err != nil || len(full) > tasks.MaxBytes {
		t.Fatal(err, len(full))
	}
	e := taskWriter(dir)
	read, err := e.taskFile("to-do.json")
	if err != nil || read.file == nil {
		t.Fatal(err, read.invalid)
	}
	j := job.Job{Tasks: &job.TaskFile{Path: "to-do.json", Seen: read.stamp, Changes: []job.TaskChange{{ID: "A", Status: "done", Summary: "it is done"}}}}
	if ev, ok := e.SaveTasks(t.Context(), j).(engine.TasksSaved); !ok || !strings.Contains(ev.Why, "more than 16 MiB") {
		t.Errorf("%+v", ev)
	}
	if now, err := e.taskFile("to-do.json"); err != nil || now.file == nil {
		t.Errorf("it cannot be read: %v %s", err, now.invalid)
	}
}

// BenchmarkTenThousandTasks is the writing of a file of 10,000 tasks of which one in ten has changed, read and synced, and
// beside it the same bytes put there by one write, sync and rename.
func BenchmarkTenThousandTasks(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	text.WriteString(`{"schema_version": 1, "tasks": [`)
	for i := range 10_000 {
		if i > 0 {
			text.WriteString(",")
		}
		deps, _ := json.Marshal([]string{fmt.Sprintf("T%05d", max(i-1, 0)), fmt.Sprintf("T%05d", i/2)})
		if i < 2 {
			deps = []byte("[]")
		}
		fmt.Fprintf(&text, "\n{\"id\": \"T%05d\", \"title\": \"do the thing number %d\", \"description\": \"%0200d\", \"status\": \"todo\", \"priority\": %d, \"depends_on\": %s}", i, i, i, i%5, deps)
	}
	text.WriteString("\n]}\n")
	path := filepath.Join(dir, "to-do.json")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	e := taskWriter(dir)
	b.Run("write", func(b *testing.B) {
		for i := range b.N {
			b.StopTimer()
			f, err := e.taskFile("to-do.json") // it was read when it was last looked at
			if err != nil || f.file == nil {
				b.Fatal(err, f.invalid)
			}
			j := job.Job{Tasks: &job.TaskFile{Path: "to-do.json", Seen: f.stamp}}
			for k, t := range f.seen {
				c := job.TaskChange{ID: t.ID, Status: t.Status}
				if k%10 == i%10 {
					c.Status, c.Summary = map[string]string{"todo": "done", "done": "todo"}[t.Status], fmt.Sprintf("it was done in round %d", i)
				}
				j.Tasks.Changes = append(j.Tasks.Changes, c)
			}
			b.StartTimer()
			if ev, ok := e.SaveTasks(b.Context(), j).(engine.TasksSaved); !ok || ev.Why != "" || ev.Stamp == f.stamp {
				b.Fatalf("%+v", ev)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := atomicfile.Write(path, []byte(text.String()), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// tenThousand is a list of tasks, each of which depends on the two before it.
func tenThousand() []TaskSeen {
	var out []TaskSeen
	for i := range 10_000 {
		x := TaskSeen{ID: fmt.Sprintf("T%05d", i), Title: fmt.Sprintf("do the thing number %d", i), Priority: i % 5, Status: TaskTodo}
		if i > 1 {
			x.DependsOn = []string{fmt.Sprintf("T%05d", i-1), fmt.Sprintf("T%05d", i/2)}
		}
		x.Body, _ = json.Marshal(map[string]any{"id": x.ID, "title": x.Title, "description": fmt.Sprintf("%0200d", i)})
		out = append(out, x)
	}
	return out
}

// BenchmarkTenThousandTasks is one selection out of 10,000 tasks, a third of them done: the look
// and the decision. The first look, which reads the whole file, is measured separately.
func BenchmarkTenThousandTasks(b *testing.B) {
	b.Run("selection", tenThousandSelected)
}

func tenThousandSelected(b *testing.B) {
	l := tenThousandListed()
	var reading time.Duration
	for n := 0; n < b.N; {
		owed := l.st.Owed(l.spec)
		if len(owed) == 0 {
			if l.now = l.st.Wake(l.now); l.now.IsZero() { // no task is left
				l = tenThousandListed()
				continue
			}
			l.do(Ticked{})
			continue
		}
		if owed[0].Kind != DoTasks {
			b.StopTimer()
			l.carry(owed[0])
			continue
		}
		ev := TasksSeen{Run: "x-1", Step: "work", N: 1, Key: owed[0].Key, Stamp: fmt.Sprint(l.stamp), Tasks: l.file}
		b.StartTimer()
		began := time.Now()
		l.do(ev)
		if n == 0 && reading == 0 {
			reading = time.Since(began)
			b.ResetTimer()
		} else {
			n++
		}
		b.StopTimer()
	}
	b.ReportMetric(float64(reading.Microseconds())/1000, "ms/first-read")
}

// tenThousandListed is a run whose list has 6,667 tasks left to do.
func tenThousandListed() *listed {
	l := &listed{script: &script{world: newWorld(&testing.T{}, flow("x", aList(List{Attempts: 1}), listGate()))}, book: book{stamp: 1}}
	l.specs["d-x"].graph.steps["work"].Child.Outer = l.specs["d-x"]
	l.plays = func(string, int) string { return "done" }
	l.new, l.made = func(string, string) string { return "" }, func(string) {}
	l.file = tenThousand()
	for i := range 3_333 {
		l.file[i].Status = TaskDone
	}
	l.start("x")
	return l
}

package main

import "testing"

func TestAgainst(t *testing.T) {
	for _, c := range []struct {
		calls map[[2]string]int
		want  int
	}{
		{map[[2]string]int{{"a", "b"}: 3, {"b", "c"}: 2, {"a", "c"}: 1}, 0},
		{map[[2]string]int{{"a", "b"}: 3, {"b", "a"}: 1}, 1},
		{map[[2]string]int{{"a", "b"}: 3, {"b", "c"}: 3, {"c", "a"}: 2}, 2},
		{nil, 0},
	} {
		if got := against(c.calls); got != c.want {
			t.Errorf("%v: %d, want %d", c.calls, got, c.want)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Chdir("../..")
	rooms, err := measure()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		if r.dir == "engine" && r.lines > 1000 && r.function.n > 10 && r.kind.name == "decider" {
			return
		}
	}
	t.Error("no engine among the rooms, or it has no decider")
}

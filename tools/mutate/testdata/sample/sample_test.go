package sample

import "testing"

func TestSign(t *testing.T) {
	if Sign(-1) != "below" {
		t.Error("-1")
	}
}

func TestSum(t *testing.T) {
	if Sum(3) != 6 {
		t.Error("3")
	}
}

func TestCannotFail(t *testing.T) {
	if Sign(1) == "" && Sum(2) < 0 {
		t.Error("never")
	}
}

func TestOfNothing(t *testing.T) {}

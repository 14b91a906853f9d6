package main

import (
	"testing"
	"time"
)

func TestDebianVersion(t *testing.T) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3": "1.2.3", "v1.2.3-4-gabcdef": "1.2.3+4+gabcdef", "abcdef0": "0~20261121.abcdef0", "devel": "0~20261121.devel", "v": "0~20261121.v", "7e2a1b0": "0~20261121.7e2a1b0",
	} {
		if got := debianVersion(in, at); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

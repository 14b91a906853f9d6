//go:build linux

package agents

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkLaunch measures a launch beside a plain start of the same command
// by os/exec, in turns within one run:
//
//	first-µs  from Ensure called to the command's first instruction, p50 (p99: first99-µs)
//	plain-µs  the same for os/exec: from Start called
//	first-x   the ratio of the two
//	end-µs    from the command's last word to Wait's return; endplain-µs is os/exec's
//	whole-x   Ensure and Wait beside Start and Wait
func BenchmarkLaunch(b *testing.B) {
	stamp := stampProgram(b)
	root := b.TempDir()
	r := warm(b, 1)
	var first, plain, end, endPlain, whole, wholePlain []time.Duration
	once := func(i int) {
		spec := Spec{Key: fmt.Sprintf("bench/%d", i), Dir: filepath.Join(root, fmt.Sprint(i)), PidFile: filepath.Join(root, "pids", fmt.Sprint(i)),
			Argv: []string{stamp}, Env: []string{"PATH=/usr/bin:/bin", "SLUICE_TOKEN=" + fmt.Sprint(i)}, Cwd: root, Token: fmt.Sprint(i)}
		began := monotonic()
		p, err := r.Ensure(context.Background(), spec)
		if err != nil {
			b.Fatal(err)
		}
		if e, err := p.Wait(context.Background()); err != nil || e.Code != 0 {
			b.Fatalf("%+v, %v", e, err)
		}
		ended := monotonic()
		data, err := os.ReadFile(filepath.Join(spec.Dir, stdoutFile))
		if err != nil {
			b.Fatal(err)
		}
		at := stampOf(b, data)
		first, end, whole = append(first, at-began), append(end, ended-at), append(whole, ended-began)

		var out bytes.Buffer
		cmd := exec.Command(stamp)
		cmd.Dir, cmd.Env, cmd.Stdout = root, spec.Env, &out
		began = monotonic()
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		ended = monotonic()
		at = stampOf(b, out.Bytes())
		plain, endPlain, wholePlain = append(plain, at-began), append(endPlain, ended-at), append(wholePlain, ended-began)
	}
	once(-1) // the first pays for the process that launches
	first, plain, end, endPlain, whole, wholePlain = nil, nil, nil, nil, nil, nil
	for i := 0; b.Loop(); i++ {
		once(i)
	}
	micro := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.ReportMetric(micro(quantile(first, 50)), "first-µs")
	b.ReportMetric(micro(quantile(first, 99)), "first99-µs")
	b.ReportMetric(micro(quantile(plain, 50)), "plain-µs")
	b.ReportMetric(micro(quantile(plain, 99)), "plain99-µs")
	b.ReportMetric(float64(quantile(first, 50))/float64(quantile(plain, 50)), "first-x")
	b.ReportMetric(micro(quantile(end, 50)), "end-µs")
	b.ReportMetric(micro(quantile(endPlain, 50)), "endplain-µs")
	b.ReportMetric(float64(quantile(whole, 50))/float64(quantile(wholePlain, 50)), "whole-x")
}

func quantile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[min(len(all)*percent/100, len(all)-1)]
}

// monotonic is the clock that the stamp program reads.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func stampOf(tb testing.TB, data []byte) time.Duration {
	tb.Helper()
	if len(data) != 16 {
		tb.Fatalf("a stamp of %d bytes", len(data))
	}
	return time.Duration(binary.LittleEndian.Uint64(data))*time.Second + time.Duration(binary.LittleEndian.Uint64(data[8:]))
}

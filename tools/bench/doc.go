// Command bench measures how fast sluice is: the real binary and its real daemon, on a real git repo, with real inotify.
// Each figure stands beside its floor, measured in the same run on the same disk, so that the load of the machine hits
// both: quote the ratio, not the number.
//
//	make bench                                  every row
//	go run ./tools/bench -rows 1,3           some of them
//	make bench-check OLD=main BENCH="-rows 1"   two commits in turns, and a verdict for each figure
//	go run ./tools/bench -short              every row once with tiny numbers: shows that it works, says nothing of speed
//
// A floor is the least that anybody could write for the same job; those that are programs of ours are in this package.
// docs/bench.md tells what each row measures.
package main

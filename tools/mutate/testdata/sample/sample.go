// Package sample is what the test of tools/mutate is tried on.
package sample

type flag bool

// Sign says where n lies.
func Sign(n int) string {
	var zero flag = n == 0
	switch {
	case n < 0:
		return "below"
	case bool(zero):
		return "zero"
	}
	return "above"
}

// Sum adds the numbers up to n.
func Sum(n int) (sum int) {
	for i := 1; i <= n; i++ {
		if f := flag(i > 0); f {
			sum += i
		}
	}
	return sum
}

// Never is called by no test.
func Never(a, b int) bool { return a < b }

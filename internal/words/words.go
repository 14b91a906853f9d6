// Package words has the names by which the executor calls what internal/text says: what notices and screens say alike.
package words

import "sluice/internal/text"

// Unheld is text.Unheld.
const Unheld = text.Unheld

// Clean is text.Line.
func Clean(s string) string { return text.Line(s) }

// GoneOnCount is text.GoneOnCount.
func GoneOnCount(n int) string { return text.GoneOnCount(n) }

// Unshipped is text.Unshipped.
func Unshipped(n int) string { return text.Unshipped(n) }

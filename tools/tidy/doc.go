// Package tidy holds the house rules that a program can hold: who imports whom, documents, lengths. It has tests only.
package tidy

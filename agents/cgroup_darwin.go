package agents

import "syscall"

// macOS has no cgroups.

func cgroupHome() string { return "" }

func cgroupName(string) string { return "" }

func makeCgroup(string) (string, int) { return "", -1 }

func startIn(*syscall.SysProcAttr, int) {}

func killCgroup(string, string) {}

func populated(string) bool { return false }

func removeCgroup(string) {}

func removeStrays(string) {}

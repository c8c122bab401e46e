// Package kubernetes tests the program mlpromote in a cluster: a real Kubernetes with containerd, on this machine alone.
// `make interop-kubernetes` builds its programs and runs the tests. Everywhere else they are skipped.
package kubernetes

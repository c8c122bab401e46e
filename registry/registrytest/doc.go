// Package registrytest is the contract of each storage port of the registry as a suite
// of tests. Every implementation, wrapper and client passes the suite of its port.
//
// Each suite takes a function that makes a new, empty implementation; what has to be
// closed, it registers with t.Cleanup. A suite runs its parts in parallel.
package registrytest

// Package cluster reads the nodes of a Kubernetes cluster and the devices that DRA drivers publish, finds the nodes that
// are alike, and asks a cluster for the devices of a target. It does no I/O but the reading of what it is given.
package cluster

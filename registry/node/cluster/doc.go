// Package cluster reads the nodes of a Kubernetes cluster and the devices that DRA drivers publish, finds the nodes that
// are alike, and asks a cluster for the devices of a target. It reads from the readers that it gets, and does no other I/O.
package cluster

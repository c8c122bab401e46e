package artifact

// Kind names the class of the node's hardware, by the facts that do not decide. [evidence.ReportHead.AlikeMachine] compares all facts of two reports.
func (n Node) Kind() string {
	kind := n.OS + "/" + n.CPU.Arch + "/" + n.CPU.Level + "/" + n.CPU.Vendor + "/" + n.CPU.Model
	for _, a := range n.Accelerators {
		kind += "+" + a.Vendor + "/" + a.Product + "/" + a.MIG
	}
	return kind
}

package peer

import (
	"fmt"
	"net/netip"
)

// holders returns an error for an address of this machine: the system tells nobody who
// has a connection of TCP, and what cannot be told is refused.
func holders(at, _ netip.AddrPort) ([]process, error) {
	if isLocal(at.Addr()) {
		return nil, fmt.Errorf("%w over TCP on this system", ErrUnseen)
	}
	return nil, ErrElsewhere
}

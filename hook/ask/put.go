package ask

import (
	"bufio"
	"errors"
)

// ErrNoSession means that a process does not belong to a live session of ours.
var ErrNoSession = errors.New("this is not inside a live session of heartbeat's")

// Put asks something that is no hook's, of the session that a process belongs to by its
// environment: the whole payload is in memory. The error matches ErrNoSession where it belongs to
// none.
func Put(getenv func(string) string, kind Kind, payload []byte) (Answer, error) {
	token, path := getenv(EnvSession), getenv(EnvSocket)
	if token == "" || path == "" {
		return Answer{}, ErrNoSession
	}
	conn, err := dial(path)
	if err != nil {
		return Answer{}, errors.Join(ErrNoSession, err)
	}
	defer conn.Close()
	if _, err := conn.Write(Encode(token, kind, payload)); err != nil {
		return Answer{}, err
	}
	return await(conn, bufio.NewReaderSize(conn, 4<<10))
}

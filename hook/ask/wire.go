package ask

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// How hook and shim speak. The hook: a header, the payload in parts, each behind its length in a
// line, one of length 0 at the end. The shim: signs that it works on an answer, then the answer's
// kind and length in a line, then its body. Where the answer has one, the hook writes it to where
// it belongs and says whether that was done (taken, refused), and the shim says that it knows:
// only then the client is told. So a prompt that one of them does not know of is not handed over.

// version is the first word of a header: a shim does nothing for a hook of another one.
const version = "heartbeat-2"

// Kind is what a hook asks.
type Kind string

// The kinds of questions.
const (
	Event Kind = "event"       // what to do about an event; the payload is the client's
	Line  Kind = "status-line" // the client tells its status line something
	Alive Kind = "alive"       // something in the session gives a sign of life (SayAlive)
	Wish  Kind = "wish"        // something in the session wants the scheduler to do something
)

// AnswerKind is what a hook is to do.
type AnswerKind byte

// The kinds of answers.
const (
	Nothing AnswerKind = '0' // exit with 0
	Print   AnswerKind = 'J' // write the body, which is JSON or a line, to stdout, and exit with 0
	Prompt  AnswerKind = 'P' // write the body to stderr, and exit with StatusPrompt
	Theirs  AnswerKind = 'T' // run the person's own status line
)

// Answer is what a shim says.
type Answer struct {
	Kind AnswerKind
	Body []byte
}

// Taken and Refused are what a hook says of an answer: whether it has done what that says.
const (
	Taken   = '+'
	Refused = '-'
)

// The single bytes of a shim's beside an answer.
const (
	sign     = '.' // it works on it
	longSign = ':' // the same, of something that may take long
	known    = '!' // it knows that the answer was taken
)

// How long a hook waits for the next sign. The shim gives one every signEvery.
const (
	firstPatience = 10 * time.Second
	signPatience  = 5 * time.Second
	longPatience  = 30 * time.Second
	signEvery     = 2 * time.Second
	takePatience  = 30 * time.Second // of the shim, until an answer is taken
)

// maxAnswer bounds an answer, maxPart a part of a payload.
const (
	maxAnswer = 1 << 30
	maxPart   = 1 << 20
)

func header(token string, kind Kind) string {
	return version + " " + token + " " + string(kind) + "\n"
}

// readHeader reads a header of at most some hundred bytes.
func readHeader(in *bufio.Reader) (token string, kind Kind, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return "", "", fmt.Errorf("cannot read what is asked: %w", err)
	}
	words := strings.Fields(string(line))
	if len(words) != 3 || words[0] != version {
		return "", "", errors.New("the hook is of another version of heartbeat")
	}
	return words[1], Kind(words[2]), nil
}

func writePart(w io.Writer, part []byte) error {
	_, err := w.Write(append(strconv.AppendInt(nil, int64(len(part)), 10), '\n'))
	if err == nil && len(part) > 0 {
		_, err = w.Write(part)
	}
	return err
}

// parts reads a payload that comes in parts.
type parts struct {
	in   *bufio.Reader
	left int
	over bool
}

func (p *parts) Read(b []byte) (int, error) {
	if p.over {
		return 0, io.EOF
	}
	if p.left == 0 {
		n, err := readNumber(p.in, maxPart)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			p.over = true
			return 0, io.EOF
		}
		p.left = n
	}
	n, err := p.in.Read(b[:min(len(b), p.left)])
	p.left -= n
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func readNumber(in *bufio.Reader, most int) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSuffix(line, []byte("\n"))))
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%.40q is not a length", line)
	}
	return n, nil
}

func (a Answer) write(w io.Writer) error {
	head := append([]byte{byte(a.Kind), ' '}, strconv.Itoa(len(a.Body))...)
	_, err := w.Write(append(append(head, '\n'), a.Body...))
	return err
}

func readAnswer(in *bufio.Reader) (Answer, error) {
	kind, err := in.ReadByte()
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Kind: AnswerKind(kind)}
	if space, err := in.ReadByte(); err != nil || space != ' ' || !strings.ContainsRune("0JPT", rune(kind)) {
		return Answer{}, errors.Join(err, errors.New("it is of another version of heartbeat"))
	}
	n, err := readNumber(in, maxAnswer)
	if err != nil {
		return Answer{}, err
	}
	if (a.Kind == Prompt || a.Kind == Print) != (n > 0) {
		return Answer{}, fmt.Errorf("%d bytes are not an answer", n)
	}
	// It grows with what comes: a length alone takes no memory.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, in, int64(n)); err != nil {
		return Answer{}, err
	}
	a.Body = body.Bytes()
	return a, nil
}

// Encode returns a whole question, as a hook sends it.
func Encode(token string, kind Kind, payload []byte) []byte {
	var b bytes.Buffer
	b.WriteString(header(token, kind))
	for len(payload) > 0 {
		n := min(len(payload), maxPart)
		_ = writePart(&b, payload[:n]) // into memory
		payload = payload[n:]
	}
	_ = writePart(&b, nil)
	return b.Bytes()
}

// Decode returns the answer in what a shim has sent so far, once it is whole.
func Decode(sent []byte) (a Answer, whole bool) {
	a, err := readAnswer(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(sent, string([]byte{sign, longSign, known})))))
	return a, err == nil
}

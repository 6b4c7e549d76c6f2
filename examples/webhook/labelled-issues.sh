#!/bin/sh
# Prints the open issues with the label, as a JSON list. For a real repository:
#   exec gh issue list --repo OWNER/NAME --label agent --state open --json number,title
printf '%s\n' '[{"number": 17, "title": "The door squeaks"}, {"number": 18, "title": "The light flickers"}]'

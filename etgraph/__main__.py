"""`python -m etgraph`: the command line, of the interpreter that is named."""

from etgraph.cli import main

if __name__ == "__main__":
    main()

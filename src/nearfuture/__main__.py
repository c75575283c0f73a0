"""`python -m nearfuture`, which is also how torchrun starts it."""

from nearfuture.cli import main

if __name__ == "__main__":
    main()

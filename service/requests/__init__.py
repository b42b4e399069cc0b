"""What every endpoint needs: bodies that stream, replies that stream, errors as problem+json, rates."""

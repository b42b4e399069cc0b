"""What comes from others: pins with hashes, licences, known vulnerabilities, a bill of materials, images by digest."""

"""The pages that are made from the code: each module renders one."""
